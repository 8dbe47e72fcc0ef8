/* SPDX-License-Identifier: Apache-2.0
 *
 * Subjects of pawl. Ids: bytes other than A-Z a-z 0-9 _ - : @ + / are written =XX, in upper case.
 * Pure. */
#ifndef PW_SUBJECT_H
#define PW_SUBJECT_H

#include "base/base.h"
#include "base/limits.h"

#define PW_SUBJECT_MAX 640 /* two names, an id of escapes, a namespace, numbers, dots */

/* Each returns false when it does not fit; it does for what the names' rules allow. */
bool pw_subject_journal(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard,
                        const char *machine, const char *id);
bool pw_subject_fence(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard);
bool pw_subject_mark(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard);
bool pw_subject_event(char to[PW_SUBJECT_MAX], const char *ns, const char *machine,
                      const char *name);
/* n 0: the parked entity's; else of the effect <lsn>.<n> of its visit. */
bool pw_subject_letter(char to[PW_SUBJECT_MAX], const char *ns, const char *machine, const char *id,
                       uint64_t epoch, uint64_t lsn, uint32_t n);

/* All letters of the namespace, of a machine, of an entity: NULL for any. `machine` is a valid
 * name: its wildcards would be taken as such. */
bool pw_subject_letters(char to[PW_SUBJECT_MAX], const char *ns, const char *machine,
                        const char *id);

/* The part behind pawl.<ns>.j.<shard>. taken apart. False: no entity's. */
bool pw_subject_parse(const char *subject, const char *ns, uint32_t shard,
                      char machine[PW_NAME_MAX + 1], char id[PW_ID_MAX + 1]);

/* Of which visit a letter is, and of which effect; n 0: of the parked entity, and lsn is 0. */
struct pw_letter_place {
    uint64_t epoch;
    uint64_t lsn;
    uint32_t n;
};

/* False: no letter's. What was read of it until then is left in the others. */
bool pw_subject_parse_letter(const char *subject, const char *ns, char machine[PW_NAME_MAX + 1],
                             char id[PW_ID_MAX + 1], struct pw_letter_place *place);

#endif

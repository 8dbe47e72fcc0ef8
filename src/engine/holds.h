/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys, states and machines are held: the copy in memory of the store's hold rows. Written by
 * writers, read by workers; the common case, none at all, costs one atomic load. */
#ifndef PW_HOLDS_H
#define PW_HOLDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/tables.h"

struct pw_hold {
    enum pw_hold_kind kind;
    char machine[PW_NAME_MAX + 1];
    char name[PW_KEY_MAX + 1]; /* "" for a machine */
    uint64_t shards;           /* a bit for each shard that has it */
};

/* Scopes held at once: what an operator can oversee. */
#define PW_HOLDS_MAX 1024

struct pw_holds {
    pthread_rwlock_t lock;
    struct pw_hold *list;
    size_t count;
    _Atomic size_t live;
};

void pw_holds_init(struct pw_holds *holds);
void pw_holds_fini(struct pw_holds *holds);

/* *added: the shard did not have it. PAWL_E_LIMIT, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_holds_add(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind,
                                    const char *machine, const char *name, bool *added);
void pw_holds_remove(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind,
                     const char *machine, const char *name);

/* The shard has these, and no others. */
PAWL_MUST_USE pawl_err pw_holds_set(struct pw_holds *holds, uint32_t shard,
                                    const struct pw_hold *list, size_t count);

/* Whether a scope that is held in the shard covers the entity. */
bool pw_holds_cover(struct pw_holds *holds, uint32_t shard, const struct pw_entity *entity);

#endif

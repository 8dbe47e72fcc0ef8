/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal in memory, for tests: passes the same contract as the one on a NATS server, and plays
 * the server, too. Appends arrive a little later in virtual time, in order, and only if the
 * stream's last sequence is then the expected one; they are answered a little later still. The
 * server outlives a crash of the engine, and so may appends that were under way: they arrive, or
 * not, at any later moment, also between a new owner's look and its fences. One thread. */
#ifndef PW_SIM_JOURNAL_H
#define PW_SIM_JOURNAL_H

#include "base/clock.h"
#include "base/rng.h"
#include "core/journal.h"

/* *journal is the caller's, ended by pw_sim_journal_free. The clock's wall is the server's.
 * PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_sim_journal_open(struct pw_journal **journal, struct pw_clock *clock,
                                           uint64_t seed);

/* Takes NULL. ops->close only lets go: stream and posts outlive the engine. */
void pw_sim_journal_free(struct pw_journal *journal);

/* `tick` (NULL: none) is asked before each call that reaches the server, in the middle and at the
 * end of an opening, and before each entry that is handed over by fetch. When it returns false, the
 * process dies there: the call fails with PAWL_E_IO. */
void pw_sim_journal_on_operation(struct pw_journal *journal, bool (*tick)(void *arg), void *arg);

/* One call in `one_in` fails (0: none): appends and posts are lost, or arrive and are not answered,
 * or (appends) arrive when they are given up; what was fetched is delivered again. */
void pw_sim_journal_fail(struct pw_journal *journal, uint64_t one_in);

/* The engine died, or ended: its consumer is gone; what it had under way arrives later or not. */
void pw_sim_journal_crash(struct pw_journal *journal);

/* When something arrives or is answered next. 0: something just was, or can be fetched. PW_NEVER:
 * nothing is on its way. */
uint64_t pw_sim_journal_next_ms(struct pw_journal *journal);

/* --- what befalls a server ---------------------------------------------------------------- */

/* Cannot be reached, until false. What was under way arrives later or not, and is not answered. */
void pw_sim_journal_away(struct pw_journal *journal, bool away);

/* All messages go; all below seq; those of one entity; one message. The sequences stay used. */
void pw_sim_journal_purge(struct pw_journal *journal);
void pw_sim_journal_purge_to(struct pw_journal *journal, uint64_t seq);
void pw_sim_journal_purge_subject(struct pw_journal *journal, const char *machine, const char *id);
void pw_sim_journal_delete(struct pw_journal *journal, uint64_t seq);

/* The stream is deleted, and made anew: empty, sequences from 1, another time of creation. */
void pw_sim_journal_recreate(struct pw_journal *journal);

/* Rolls back to the last snapshot, as often as wanted, under its time of creation.
 * PAWL_E_NOMEM; PAWL_E_NOT_FOUND: there is no snapshot. */
PAWL_MUST_USE pawl_err pw_sim_journal_snapshot(struct pw_journal *journal);
PAWL_MUST_USE pawl_err pw_sim_journal_restore(struct pw_journal *journal);

/* A publisher that is no owner replaces an entity's record, or writes to a subject that is no
 * entity's ("_fence", "_mark", or any other). PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_sim_journal_foreign(struct pw_journal *journal, const char *machine,
                                              const char *id, pawl_bytes bytes);
PAWL_MUST_USE pawl_err pw_sim_journal_foreign_subject(struct pw_journal *journal,
                                                      const char *subject, pawl_bytes bytes);

/* One of all these at one in `one_in` of the engine's calls, `most` times. An absence ends by
 * itself. */
void pw_sim_journal_harm(struct pw_journal *journal, uint64_t one_in, unsigned most);

/* --- what is there: borrowed until the next call -------------------------------------------- */

uint64_t pw_sim_journal_records(struct pw_journal *journal);
uint64_t pw_sim_journal_last_seq(struct pw_journal *journal);

/* How often something befell it by chance. */
uint64_t pw_sim_journal_harms(struct pw_journal *journal);

/* How many appends met another sequence than they expected. */
uint64_t pw_sim_journal_refused(struct pw_journal *journal);

/* The present message of an entity's subject; NULL: there is none. */
const struct pw_entry *pw_sim_journal_present(struct pw_journal *journal, const char *machine,
                                              const char *id);

/* All messages, in order. */
void pw_sim_journal_each(struct pw_journal *journal, pw_entry_seen seen, void *arg);

/* Events in the order of arrival, repeats too; dead letters, the newest of each subject. NULL:
 * there are not so many. */
const struct pw_post *pw_sim_journal_event(struct pw_journal *journal, size_t index);
const struct pw_post *pw_sim_journal_letter(struct pw_journal *journal, size_t index);

#endif

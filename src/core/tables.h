/* SPDX-License-Identifier: Apache-2.0
 *
 * The seven tables: what their keys and values are, and how one change is put into all of them.
 * Over the store port; writes by the shard's writer thread, reads by any. Keys are big-endian, so
 * that ranges scan in order; everything that changes is keyed by the entity's row, which rises with
 * creation, so that what is in progress lies together. */
#ifndef PW_TABLES_H
#define PW_TABLES_H

#include "base/arena.h"
#include "base/limits.h"
#include "core/codec.h"
#include "core/store.h"

struct pw_tables {
    struct pw_store *store;
    const struct pw_machines *machines;
};

/* A key on the stack. */
struct pw_key {
    uint8_t bytes[PW_LMDB_KEY_MAX];
    size_t size;
};

static inline pawl_bytes pw_key_bytes(const struct pw_key *key)
{
    pawl_bytes bytes = { key->bytes, key->size };
    return bytes;
}

void pw_key_id(struct pw_key *key, const char *machine, const char *id);
void pw_key_u64(struct pw_key *key, uint64_t value);
void pw_key_pair(struct pw_key *key, uint64_t first, uint64_t second);
/* NULL state: where the machine's entries begin. */
void pw_key_state(struct pw_key *key, const char *machine, const char *state, uint64_t row);

/* A key of the state table, taken apart. The texts are borrowed from the key. False: malformed. */
bool pw_key_state_parse(pawl_bytes key, const char **machine, const char **state, uint64_t *row);

/* --- the shard's own record: saved with each commit --------------------------------------- */

struct pw_meta {
    uint64_t lsn;      /* of the last change */
    uint64_t next_row; /* rows are never given twice */
    uint64_t sent_lsn; /* effects up to it are sent */
    uint64_t time_ms;  /* journal time of the last commit */
    uint64_t
        wall_ms; /* the machine's clock then: only ever compared with itself, at the next start */
    bool clean;  /* the last owner stopped in order */

    /* With a journal: up to where its records are known here. Zeros: it was never seen. */
    uint64_t journal_created; /* which stream it was */
    uint64_t journal_seq;
    uint64_t journal_lsn; /* of the last own record at or before it */
    bool reconciling;     /* what the stream lacks is being appended again */
};

/* PAWL_E_NOT_FOUND: a new store. */
PAWL_MUST_USE pawl_err pw_meta_load(const struct pw_tables *tables, struct pw_txn *txn,
                                    struct pw_meta *meta);
PAWL_MUST_USE pawl_err pw_meta_save(const struct pw_tables *tables, struct pw_txn *txn,
                                    const struct pw_meta *meta);

/* Which shard of which namespace this is: written once, then compared. PAWL_E_SCHEMA: another one.
 * `write` false: only compared. */
PAWL_MUST_USE pawl_err pw_meta_claim(const struct pw_tables *tables, struct pw_txn *txn,
                                     const char *ns, uint32_t shard, uint32_t shards, bool write,
                                     pawl_why *why);

/* The last tell of a shard that this one has acted on: lsn and n of its effect. 0, 0 when none. */
PAWL_MUST_USE pawl_err pw_told_load(const struct pw_tables *tables, struct pw_txn *txn,
                                    uint32_t shard, uint64_t *lsn, uint32_t *n);
PAWL_MUST_USE pawl_err pw_told_save(const struct pw_tables *tables, struct pw_txn *txn,
                                    uint32_t shard, uint64_t lsn, uint32_t n);

/* --- entities ----------------------------------------------------------------------------- */

PAWL_MUST_USE pawl_err pw_tables_find(const struct pw_tables *tables, struct pw_txn *txn,
                                      const char *machine, const char *id, uint64_t *row);

/* PAWL_E_NOT_FOUND, also of a tombstone; PAWL_E_CORRUPT. The entity lives as long as the arena's
 * content. */
PAWL_MUST_USE pawl_err pw_tables_load(const struct pw_tables *tables, struct pw_txn *txn,
                                      uint64_t row, struct pw_arena *arena,
                                      struct pw_entity *entity);

/* The same, tombstones as well. */
PAWL_MUST_USE pawl_err pw_tables_load_any(const struct pw_tables *tables, struct pw_txn *txn,
                                          uint64_t row, struct pw_arena *arena,
                                          struct pw_entity *entity);

/* What a change costs besides itself. */
struct pw_save {
    uint64_t sent_lsn; /* effects up to it need not be kept */
    uint64_t now_ms;
    bool outbox; /* with a journal: every record goes to the outbox, and what is deleted leaves a
                    tombstone; else only those with effects, which the relay sends */
    bool taken;  /* it came from the journal: only the effects that it still has go to the outbox */
    bool fresh;  /* the journal lacks the entity's record */
};

/* Puts a change (update->change != PW_UNCHANGED) into all tables. before: NULL when it creates;
 * update->after.row is set. PAWL_E_LIMIT: too large; nothing was put. Any other error: abort the
 * transaction. */
PAWL_MUST_USE pawl_err pw_tables_put(const struct pw_tables *tables, struct pw_txn *txn,
                                     const struct pw_entity *before, struct pw_update *update,
                                     const struct pw_save *save, struct pw_arena *arena);

/* A tombstone of entity's machine and id, of its version and in its row, in place of what is there;
 * and its record, unless it was taken from the journal. */
PAWL_MUST_USE pawl_err pw_tables_bury(const struct pw_tables *tables, struct pw_txn *txn,
                                      const struct pw_entity *entity, const struct pw_save *save,
                                      struct pw_arena *arena);

/* A tombstone whose time is over goes, and an outbox row of this lsn says so. */
PAWL_MUST_USE pawl_err pw_tables_forget(const struct pw_tables *tables, struct pw_txn *txn,
                                        const struct pw_entity *tombstone, uint64_t lsn,
                                        const struct pw_save *save, struct pw_arena *arena);

/* A line of history without a change of the entity, but for the count of its lines. Bounded like
 * the others. */
PAWL_MUST_USE pawl_err pw_tables_note(const struct pw_tables *tables, struct pw_txn *txn,
                                      const struct pw_entity *entity, uint64_t version,
                                      const struct pw_happening *happening, struct pw_arena *arena);

PAWL_MUST_USE pawl_err pw_due_put(const struct pw_tables *tables, struct pw_txn *txn,
                                  uint64_t due_ms, uint64_t row);
PAWL_MUST_USE pawl_err pw_due_del(const struct pw_tables *tables, struct pw_txn *txn,
                                  uint64_t due_ms, uint64_t row);

struct pw_due {
    uint64_t due_ms;
    uint64_t row;
};

/* The first `room` rows that are due; *next_ms: when the first one after them is (PW_NEVER: none).
 */
PAWL_MUST_USE pawl_err pw_due_read(const struct pw_tables *tables, struct pw_txn *txn,
                                   uint64_t now_ms, struct pw_due *due, size_t room, size_t *count,
                                   uint64_t *next_ms);

/* Deletes at most `most` outbox rows up to lsn. *left: whether there are more. */
PAWL_MUST_USE pawl_err pw_outbox_trim(const struct pw_tables *tables, struct pw_txn *txn,
                                      uint64_t lsn, size_t most, bool *left);

/* --- holds of a key, a state, a machine --------------------------------------------------- */

enum pw_hold_kind { PW_HOLD_MACHINE = 'm', PW_HOLD_STATE = 's', PW_HOLD_KEY = 'k' };
enum pw_hold_phase {
    PW_HOLDING = 1,
    PW_RELEASING = 2
}; /* releasing: the walk that lists the ready is not through */

void pw_key_hold(struct pw_key *key, enum pw_hold_kind kind, const char *machine, const char *name);
PAWL_MUST_USE pawl_err pw_hold_put(const struct pw_tables *tables, struct pw_txn *txn,
                                   enum pw_hold_kind kind, const char *machine, const char *name,
                                   enum pw_hold_phase phase);
PAWL_MUST_USE pawl_err pw_hold_del(const struct pw_tables *tables, struct pw_txn *txn,
                                   enum pw_hold_kind kind, const char *machine, const char *name);

typedef bool (*pw_hold_seen)(void *arg, enum pw_hold_kind kind, const char *machine,
                             const char *name, enum pw_hold_phase phase);
PAWL_MUST_USE pawl_err pw_hold_scan(const struct pw_tables *tables, struct pw_txn *txn,
                                    pw_hold_seen seen, void *arg);

/* --- machines that rest ------------------------------------------------------------------- */

/* Due rows of a machine that the engine did not have were dropped: when it has it again, they are
 * put back, by a release of the machine. */
PAWL_MUST_USE pawl_err pw_rest_put(const struct pw_tables *tables, struct pw_txn *txn,
                                   const char *machine);
PAWL_MUST_USE pawl_err pw_rest_has(const struct pw_tables *tables, struct pw_txn *txn,
                                   const char *machine, bool *rests);

/* The row becomes the open release of the whole machine; one that is held waits for its own. */
PAWL_MUST_USE pawl_err pw_rest_end(const struct pw_tables *tables, struct pw_txn *txn,
                                   const char *machine);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of pawl, with its reason. Sizes in bytes, unless the name says otherwise. */
#ifndef PW_LIMITS_H
#define PW_LIMITS_H

#include <assert.h>

/* Names become subject tokens and parts of LMDB keys (511 bytes at most, all parts together). */
#define PW_NAME_MAX 64
#define PW_NAMESPACE_MAX 32
#define PW_ID_MAX 128
#define PW_KEY_MAX 128
#define PW_MESSAGE_ID_MAX 128
#define PW_TRACE_SIZE 55 /* W3C trace context, version 00: "00-<32 hex>-<16 hex>-<2 hex>" */
#define PW_LMDB_KEY_MAX 511
static_assert(PW_NAME_MAX + 1 + PW_NAME_MAX + 1 + 8 <= PW_LMDB_KEY_MAX,
              "state index key fits LMDB");
static_assert(PW_NAME_MAX + 1 + PW_ID_MAX <= PW_LMDB_KEY_MAX, "id key fits LMDB");

/* The text of an error as it is kept with the entity. */
#define PW_ERROR_MAX 255

/* NATS takes 1 MiB a message by default; headers and the record's frame need room. */
#define PW_DATA_MAX (256u * 1024)
#define PW_RECORD_MAX (768u * 1024)
static_assert(PW_DATA_MAX < PW_RECORD_MAX, "one entity's data fits a record");
/* What brings something of the user's leaves so much of a record free: for the state's name, the
 * error and the numbers of the changes that must never be refused (timers, retries, parking). */
#define PW_RECORD_SPARE 1024u
static_assert(PW_NAME_MAX + PW_ERROR_MAX + 32 * 10 + 64 <= PW_RECORD_SPARE,
              "a timer's change always fits");

/* Of one entity. Message ids: a sender repeats within its retry time, not after 16 other commands.
 */
#define PW_ANSWERS_MAX 16
#define PW_MEMOS_MAX 16
#define PW_MEMO_SIZE_MAX (16u * 1024)
/* Effects of one outcome, and the ones an entity may have waiting to be sent. */
#define PW_EFFECTS_MAX 64
#define PW_EFFECTS_WAITING_MAX 1024
static_assert(PW_EFFECTS_MAX <= PW_EFFECTS_WAITING_MAX, "one outcome's effects can wait");
/* Lines of an entity's history: what a person reads, newest kept. */
#define PW_HISTORY_MAX 64

/* A machine: what a person can draw; edges are looked up by a walk. */
#define PW_STATES_MAX 256
#define PW_EVENTS_MAX 256
#define PW_EDGES_MAX 1024
#define PW_MACHINES_MAX 64
#define PW_SHARDS_MAX 64
#define PW_WORKERS_MAX 256

/* Defaults of the machine's tables. */
#define PW_ATTEMPTS_DEFAULT 5
#define PW_BACKOFF_MS_DEFAULT 1000
#define PW_BACKOFF_MS_MAX_DEFAULT (5u * 60 * 1000)
#define PW_JITTER_DEFAULT 20
#define PW_ATTEMPT_MS_DEFAULT (5u * 60 * 1000)
#define PW_WORKERS_DEFAULT 4
#define PW_LATER_DEFAULT 10000
#define PW_KEY_SHARE_DEFAULT 50
#define PW_ROUNDS_DEFAULT 100
#define PW_CRASHES_DEFAULT 5
#define PW_RETENTION_MS_DEFAULT (7ull * 24 * 60 * 60 * 1000)

/* What was deleted is remembered, in store and journal, for copies that were away so long. */
#define PW_TOMBSTONE_KEEP_MS (7ull * 24 * 60 * 60 * 1000)

/* Durations and times stay below this, so that sums of a few never overflow 64 bits and a due time
 * is never 2^64-1. 1000 years in ms. */
#define PW_DURATION_MS_MAX (1000ull * 366 * 24 * 60 * 60 * 1000)

/* Commands waiting for the writer: some ten batches, so that memory and waiting time are bounded.
 */
#define PW_INBOX_MAX 16384
/* And what they may hold in memory: some hundred of the largest. */
#define PW_INBOX_BYTES_MAX (64u * 1024 * 1024)
/* Changes in one commit. What waits is taken, so a batch is large only under load; then fewer
 * commits write each page fewer times (tests/bench). */
#define PW_BATCH_MAX 4096
/* Bytes of one commit: keeps LMDB's dirty list far below its limit of 131,072 pages. */
#define PW_BATCH_BYTES_MAX (32u * 1024 * 1024)
/* Timers that one batch takes from the due index: commands get through between them. */
#define PW_DUE_BATCH_MAX 256
/* Rows that a walk (recovery, release, sweep) reads in one turn. */
#define PW_WALK_BATCH_MAX 1024
/* Outbox rows that the relay reads in one turn, and effects under way at once. */
#define PW_RELAY_BATCH_MAX 256
/* Their bytes: a lot in memory. One row more, of at most PW_RECORD_MAX, may be read. */
#define PW_RELAY_BYTES_MAX (4u * 1024 * 1024)
/* Records in the outbox at which commands are refused, unless the options say otherwise. */
#define PW_OUTBOX_ROWS_DEFAULT 100000
/* Entries that one turn takes from the stream: catching up, comparing. */
#define PW_READ_BATCH_MAX 256
/* How often the stream is held against what should be in it, and its mark renewed. */
#define PW_COMPARE_MS (10u * 1000)
#define PW_MARK_MS 1000
/* Records that the relay may have unacknowledged: the knee of JetStream's rate over its latency. */
#define PW_WINDOW 512

/* Out of space: how often a refused commit is tried again, and how long it must last that there is
 * room to be told. */
#define PW_FULL_RETRY_MS 1000
/* The safety net's sweep. */
#define PW_SWEEP_MS (60u * 1000)
/* Slots of dead readers are freed so often. */
#define PW_READER_CHECK_MS (5u * 1000)
/* New commands are refused when this share of the map is used: the rest lets work in progress end.
 */
#define PW_MAP_FILL_PERCENT 80
/* Above this only what makes room, or must fire to do so, is committed: deletes, timers (retention
 * among them), trims. */
#define PW_MAP_RESERVE_PERCENT 92

#endif

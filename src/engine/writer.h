/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer's calls to other parts of the engine. */
#ifndef PW_WRITER_H
#define PW_WRITER_H

#include "engine/engine.h"

/* PAWL_E_NOMEM. fini answers what is left in the inbox with PAWL_E_CLOSED. */
PAWL_MUST_USE pawl_err pw_writer_init(struct pw_shard *shard, uint64_t seed);
void pw_writer_fini(struct pw_shard *shard);

/* A command from outside. PAWL_OK: taken, `done` will be called. PAWL_E_BUSY: the inbox is full
 * (with wait: waits). PAWL_E_CLOSED. Any thread. */
PAWL_MUST_USE pawl_err pw_writer_submit(struct pw_shard *shard, struct pw_request *request,
                                        bool wait);

/* A request from inside: always taken, since what makes them is bounded, and they must not be lost.
 * Any thread. */
void pw_writer_push(struct pw_shard *shard, struct pw_request *request);

/* An inside request that found no room: tried again later. Writer thread. */
void pw_writer_keep(struct pw_shard *shard, struct pw_request *request);

/* Reads which tells were acted on. Writer thread, or before it runs. */
PAWL_MUST_USE pawl_err pw_told_load_all(struct pw_shard *shard, struct pw_txn *txn);

/* Answers all that waits in the inbox with PAWL_E_CLOSED. No turn runs or follows. */
void pw_writer_give_up(struct pw_shard *shard);

/* Marks the end of an orderly stop: the last change before the store is closed. */
void pw_writer_seal(struct pw_shard *shard);

#endif

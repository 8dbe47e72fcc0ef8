/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay's thread, from outbox rows to their acknowledgements: an outbox that filled while NATS
 * was away, then the real turns against a real server. The writer's trims are not in it (they are
 * in `commit`). */
#include <stdlib.h>

#include "base/base.h"
#include "bench/bare_nats.h"
#include "bench/support.h"
#include "jetstream/journal.h"
#include "support/nats.h"

#define RUNS 9

static const pawl_machine *const machines[] = { &bench_waiting_machine, NULL };

/* --- a journal that is away --------------------------------------------------------------- */

static pawl_err look_away(struct pw_journal *journal, struct pw_journal_state *state, pawl_why *why)
{
    (void)journal;
    (void)state;
    return pw_fail(why, PAWL_E_IO, "away");
}

static void nothing(struct pw_journal *journal)
{
    (void)journal;
}

static const struct pw_journal_ops away_ops = { .look = look_away,
                                                .halt = nothing,
                                                .close = nothing };

static void no_turn(void *arg)
{
    (void)arg; /* nobody waits for an answer here */
}

/* --- filling ------------------------------------------------------------------------------ */

static void on_created(void *arg, pawl_err err, const pawl_answer *answer)
{
    size_t *answered = arg;
    bench_must(err, &answer->why, "create");
    (*answered)++;
}

static void create(struct pawl *engine, size_t entity, size_t *answered)
{
    const pawl_new options = { .data = bench_data() };
    pawl_why why = { "" };
    char id[32] = "";
    pw_print(id, sizeof(id), "e%zu", entity);
    bench_must(pawl_create_async(engine, bench_waiting_machine.name, id, &options, on_created,
                                 answered, &why),
               &why, "create");
}

static void fill(const char *dir, size_t rows, struct pw_store *(*wrap)(struct pw_store *))
{
    struct pw_journal away = { .ops = &away_ops };
    const struct bench_how how = { .journal = &away, .drive = { .turn = no_turn }, .wrap = wrap };
    struct pawl *engine = bench_engine(dir, machines, &how);
    size_t answered = 0;
    for (size_t i = 0; i < rows; i++) {
        create(engine, i, &answered);
        while (i + 1 - answered >= 4096 || (i + 1 == rows && answered < rows))
            (void)pw_writer_turn(&engine->shards[0]);
    }
    pawl_close(engine);
}

/* --- one run ------------------------------------------------------------------------------ */

static void turn(struct pw_shard *shard)
{
    uint64_t rest_ms = pw_relay_turn(shard);
    if (rest_ms > 0)
        pw_nap(&shard->relay.wake, rest_ms);
}

/* Seconds from the opened journal to the last acknowledgement. */
static double run_relay(const char *dir, size_t rows)
{
    struct nats_server server;
    struct pw_journal *journal = NULL;
    pawl_why why = { "" };
    fill(dir, rows, NULL);
    nats_server_start(&server, NULL);
    const struct pw_jetstream_options options = { .bus = server.bus, .ns = BENCH_NS };
    bench_must(pw_jetstream_open(&journal, &options, &why), &why, "open the journal");
    const struct bench_how how = { .journal = journal, .drive = { .turn = no_turn } };
    struct pawl *engine = bench_engine(dir, machines, &how);
    struct pw_shard *shard = &engine->shards[0];
    while (shard->relay.keeper.tail != PW_TAIL_LIVE) {
        (void)pw_relay_turn(shard);
        (void)pw_writer_turn(shard);
    }
    double began = bench_seconds();
    while (atomic_load(&shard->acked_lsn) < atomic_load(&shard->outbox_lsn))
        turn(shard);
    double took = bench_seconds() - began;
    pawl_close(engine);
    nats_server_end(&server);
    bench_remove(dir);
    return took;
}

static double run_bare(const struct bare_record *records, size_t count)
{
    struct nats_server server;
    struct bare_nats nats;
    nats_server_start(&server, NULL);
    bare_nats_open(&nats, server.bus, NULL, NULL);
    double began = bench_seconds();
    for (size_t i = 0; i < count; i++)
        bare_nats_append(&nats, &records[i]);
    bare_nats_finish(&nats);
    double took = bench_seconds() - began;
    bare_nats_close(&nats);
    nats_server_end(&server);
    return took;
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t rows = args.quick ? 5000 : 90000;
    char dir[BENCH_PATH_MAX] = "";
    struct tape tape;
    double relay_rates[RUNS] = { 0 };
    double bare_rates[RUNS] = { 0 };
    size_t count = 0;
    bench_path(dir, args.dir, "relay");
    for (size_t i = 0; args.engine && i < RUNS; i++)
        (void)run_relay(dir, rows);
    if (args.engine)
        return 0;
    tape_begin(&tape);
    fill(dir, rows, tape_wrap);
    tape_end(&tape);
    bench_remove(dir);
    struct bare_record *records = bare_records(&tape, &count);
    for (size_t i = 0; i < RUNS; i++) {
        relay_rates[i] = (double)rows / run_relay(dir, rows);
        bare_rates[i] = (double)count / run_bare(records, count);
        bench_say("relay: relay %.0f, bare %.0f records/s", relay_rates[i], bare_rates[i]);
    }
    bench_result_of_pairs("relay", relay_rates, bare_rates, RUNS, "records/s");
    pw_free(records);
    tape_free(&tape);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change costs in the writer: real commands in the inbox, the real turn, a journal that
 * acknowledges at once, so that outbox rows are written, relayed and trimmed. One thread plays all
 * parts; only the writer's turns are timed. */
#include <stdlib.h>

#include "base/base.h"
#include "bench/bare_lmdb.h"
#include "bench/support.h"

#define WAVE 4096 /* entities in progress at a time */
#define RUNS 5

enum { CART, ORDERED, PACKED, SHIPPED };
enum { ORDER, PACK, SHIP };

static const pawl_state states[] = {
    [CART] = { .name = "cart", .flags = PAWL_START, .timeout_ms = 86400000 },
    [ORDERED] = { .name = "ordered", .timeout_ms = 3600000 },
    [PACKED] = { .name = "packed" },
    [SHIPPED] = { .name = "shipped", .flags = PAWL_FINAL },
};

static const char *const events[] = { [ORDER] = "order", [PACK] = "pack", [SHIP] = "ship" };

static const pawl_edge edges[] = {
    { .from = CART, .event = ORDER, .to = ORDERED },
    { .from = CART, .event = PAWL_TIMEOUT, .to = SHIPPED },
    { .from = ORDERED, .event = PACK, .to = PACKED },
    { .from = ORDERED, .event = PAWL_TIMEOUT, .to = SHIPPED },
    { .from = PACKED, .event = SHIP, .to = SHIPPED },
};

static const pawl_machine machine = {
    .name = "parcel", PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges)
};

static const pawl_machine *const machines[] = { &machine, NULL };

/* --- a journal that acknowledges at once -------------------------------------------------- */

struct journal {
    struct pw_journal base; /* first */
    uint64_t last_lsn;
    uint64_t last_seq;
    uint64_t entities; /* e0 to e<entities - 1> were appended */
};

static struct journal *of(struct pw_journal *journal)
{
    return (struct journal *)journal;
}

static pawl_err look(struct pw_journal *journal, struct pw_journal_state *state, pawl_why *why)
{
    (void)why;
    *state = (struct pw_journal_state){
        .created = 1,
        .last_seq = of(journal)->last_seq,
        .records = of(journal)->entities + 2, /* an opening and a mark */
    };
    return PAWL_OK;
}

static pawl_err read_entries(struct pw_journal *journal, uint64_t from_seq, bool heads, size_t most,
                             pw_entry_seen seen, void *arg, uint64_t *next_seq, bool *through)
{
    (void)journal;
    (void)heads;
    (void)most;
    (void)seen;
    (void)arg;
    *next_seq = from_seq;
    *through = true;
    return PAWL_OK;
}

static pawl_err open_journal(struct pw_journal *journal, const struct pw_opening *opening,
                             uint64_t *seq)
{
    (void)opening;
    *seq = ++of(journal)->last_seq;
    return PAWL_OK;
}

static pawl_err append(struct pw_journal *journal, const struct pw_append *append)
{
    struct journal *j = of(journal);
    uint64_t number = strtoull(append->id + 1, NULL, 10);
    j->entities = number >= j->entities ? number + 1 : j->entities;
    j->last_lsn = append->lsn;
    j->last_seq++;
    return PAWL_OK;
}

static pawl_err mark(struct pw_journal *journal, uint64_t sent_lsn, pawl_bytes bytes)
{
    (void)sent_lsn;
    (void)bytes;
    of(journal)->last_seq++;
    return PAWL_OK;
}

static pawl_err acked(struct pw_journal *journal, struct pw_acked *acked)
{
    *acked = (struct pw_acked){ .lsn = of(journal)->last_lsn, .seq = of(journal)->last_seq };
    return PAWL_OK;
}

static void close_journal(struct pw_journal *journal)
{
    (void)journal; /* the caller's */
}

/* Nothing works here, and nothing is sent. */
static const struct pw_journal_ops journal_ops = {
    .look = look,
    .read = read_entries,
    .open = open_journal,
    .append = append,
    .mark = mark,
    .acked = acked,
    .remove = NULL,
    .last = NULL,
    .post = NULL,
    .posted = NULL,
    .fetch = NULL,
    .halt = close_journal,
    .close = close_journal,
};

/* --- one run ------------------------------------------------------------------------------ */

static void no_turn(void *arg)
{
    (void)arg; /* nobody waits for an answer here */
}

static void on_answer(void *arg, pawl_err err, const pawl_answer *answer)
{
    size_t *answered = arg;
    bench_must(err, &answer->why, "command");
    (*answered)++;
}

/* event NULL: create. */
static void submit(struct pawl *engine, size_t entity, const char *event, size_t *answered)
{
    const pawl_new create = { .data = bench_data() };
    char id[32] = "";
    pawl_why why = { "" };
    pw_print(id, sizeof(id), "e%zu", entity);
    pawl_err err =
        event == NULL
            ? pawl_create_async(engine, machine.name, id, &create, on_answer, answered, &why)
            : pawl_send_async(engine, machine.name, id, event, NULL, on_answer, answered, &why);
    bench_must(err, &why, "submit");
}

/* Runs what was submitted. Returns the seconds that the writer took. */
static double drain(struct pawl *engine, const size_t *answered, size_t until)
{
    struct pw_shard *shard = &engine->shards[0];
    double took = 0;
    while (*answered < until) {
        double began = bench_seconds();
        (void)pw_writer_turn(shard);
        took += bench_seconds() - began;
        while (atomic_load(&shard->trim_lsn) < atomic_load(&shard->outbox_lsn))
            (void)pw_relay_turn(shard);
    }
    return took;
}

/* Events come in no order: that of rows is shuffled, the same way each time. */
static void shuffle(size_t *order, size_t count, struct pw_rng *rng)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)pw_rng_below(rng, i);
        size_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

/* The seconds that the writer took for 4 changes of each entity. */
static double run_engine(const char *dir, size_t entities,
                         struct pw_store *(*wrap)(struct pw_store *))
{
    struct journal journal = { .base = { .ops = &journal_ops }, .last_lsn = 0 };
    const struct bench_how how = { .journal = &journal.base,
                                   .drive = { .turn = no_turn },
                                   .wrap = wrap };
    struct pawl *engine = bench_engine(dir, machines, &how);
    size_t answered = 0;
    size_t submitted = 0;
    double took = 0;
    size_t order[WAVE] = { 0 };
    struct pw_rng rng = { .state = 1 };
    for (size_t wave = 0; wave < entities; wave += WAVE) {
        size_t count = entities - wave < WAVE ? entities - wave : WAVE;
        for (size_t e = 0; e < 1 + PW_COUNT(events); e++) {
            for (size_t i = 0; i < count; i++, submitted++)
                submit(engine, wave + (e == 0 ? i : order[i]), e == 0 ? NULL : events[e - 1],
                       &answered);
            took += drain(engine, &answered, submitted);
            shuffle(order, count, &rng);
        }
    }
    pawl_close(engine);
    bench_remove(dir);
    return took;
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t entities = args.quick ? 5000 : 40000;
    char engine_dir[BENCH_PATH_MAX] = "";
    char bare_dir[BENCH_PATH_MAX] = "";
    struct tape tape;
    double engine_rates[RUNS] = { 0 };
    double bare_rates[RUNS] = { 0 };
    bench_path(engine_dir, args.dir, "commit-engine");
    bench_path(bare_dir, args.dir, "commit-bare");
    for (size_t i = 0; args.engine && i < RUNS; i++)
        (void)run_engine(engine_dir, entities, NULL);
    if (args.engine)
        return 0;
    tape_begin(&tape);
    (void)run_engine(engine_dir, entities, tape_wrap);
    tape_end(&tape);
    const struct bare_way way = bare_lmdb_tune(&tape, bare_dir);
    for (size_t i = 0; i < RUNS; i++) {
        engine_rates[i] = (double)tape.changes / run_engine(engine_dir, entities, NULL);
        bare_rates[i] = (double)tape.changes / bare_lmdb(&tape, &way, bare_dir);
        bench_say("commit: engine %.0f, bare %.0f changes/s", engine_rates[i], bare_rates[i]);
    }
    bench_result_of_pairs("commit", engine_rates, bare_rates, RUNS, "changes/s");
    tape_free(&tape);
    return 0;
}

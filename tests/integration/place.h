/* SPDX-License-Identifier: Apache-2.0
 *
 * A place of its own for a test: a real nats-server, a data directory, and an engine on both. */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

#include "base/wake.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "pawl/pawl.h"
#include "support/nats.h"
#include "support/test.h"

/* Looks again and again, until it holds or 60 seconds are over. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        struct pw_wake wake_;                                                                      \
        int looks_ = 0;                                                                            \
        pw_wake_init(&wake_);                                                                      \
        for (; !(condition) && looks_ < 6000; looks_++)                                            \
            pw_nap(&wake_, 10);                                                                    \
        pw_wake_fini(&wake_);                                                                      \
        assert_true(looks_ < 6000);                                                                \
    } while (0)

struct place {
    struct nats_server server;
    char dir[256];
    char old[300]; /* a copy of the directory */
    _Atomic uint64_t runs;
    pawl *engine;
    uint64_t outbox_rows_max;
    const pawl_unit *also; /* besides the machine "two"; NULL: none */
};

/* For cmocka: with a server, and no engine yet. */
int make_place(void **state);
int leave_place(void **state);

/* The engine, with the machine "two": "waiting" until the event "go", then the works "first" and
 * "second", which count in `runs`, then "done". It looks at its stream twice a second. */
void start(struct place *place);
void stop(struct place *place);

void forget_dir(const char *dir);
void copy_dir(const char *from, const char *to);

/* The entities "e<from>" to "e<to - 1>" of "two" are made; get the event "go". */
pawl_err try_create(struct place *place, unsigned n);
void create(struct place *place, unsigned from, unsigned to);
void create_large(struct place *place, unsigned n, size_t size); /* with so many bytes of data */
void go(struct place *place, unsigned from, unsigned to);

uint64_t count_in(struct place *place, const char *state);
bool at_rest(struct place *place); /* the outbox is empty */
struct pw_health health_of(struct place *place);
bool is_live(struct place *place);
uint32_t fence_of(struct place *place); /* of the shard's last change */

#define METRIC(place, name) atomic_load(&(place)->engine->metrics.name)

/* Waits until the outbox is empty and the stream holds exactly the newest record of each entity
 * ("two" has so many), and finds nothing wrong. tombstones: records besides. */
void expect_records(struct place *place, uint64_t entities, uint64_t tombstones);
void expect_right(struct place *place, uint64_t entities);

/* And all are done, each after two works at least. */
void expect_done(struct place *place, uint64_t entities);

/* A request to the server, which must answer without an error; a message to a subject. */
void ask(struct place *place, const char *subject, const char *body);
void publish(struct place *place, const char *subject);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A life of an entity, for the tests of step(): plays the store. It takes over what step returns,
 * as codec and tables would, and fails the test when something does not hold that must hold after
 * every change. */
#ifndef TESTS_LIFE_H
#define TESTS_LIFE_H

#include "base/limits.h"
#include "core/step.h"
#include "support/test.h"

enum { IDLE, WORK, REPAIR, WAIT, END, JOB_STATES };
enum { GO, DONE, CANCEL, AGAIN, JOB_EVENTS };

/* idle waits, work and repair work (repair without an edge for `failed`), wait waits with a timeout
 * and takes "done" late. */
extern const pawl_machine life_job;

/* Begins by working, and keeps its final entities for ever. */
extern const pawl_machine life_run;

struct life {
    const pawl_machine *machine;
    struct pw_entity entity;
    bool exists;
    uint64_t lsn;
    uint64_t now_ms;
    struct pw_update update;
    pawl_why why;
    struct pw_answer answers[PW_ANSWERS_MAX];
    struct pw_memo memos[PW_MEMOS_MAX];
    char ids[PW_ANSWERS_MAX + 1][16];
};

enum kind { NONE, WAITING, WORKING, RETRYING, HELD, PARKED, FINAL, UNKNOWN, KINDS };
extern const char *const life_kind_names[];

/* Nothing exists; time 1000, last lsn 100. */
void life_begin(struct life *l, const pawl_machine *machine);
/* Begins, and creates. */
void life_create(struct life *l, const pawl_machine *machine);
/* An entity of life_job of that kind. */
void life_bring(struct life *l, enum kind kind);

/* One step, at l->now_ms. Texts that are NULL are empty, the id "7". */
pawl_err life_step(struct life *l, struct pw_input input);
pawl_err life_command(struct life *l, enum pw_input_kind kind);
pawl_err life_send(struct life *l, int event);
pawl_err life_due_at(struct life *l, uint64_t ms);

/* An input about the attempt that runs, or `older` ones before it. */
struct pw_input life_task(const struct life *l, enum pw_input_kind kind, uint32_t older);
/* Its outcome "done": to be tried now or later. */
struct pw_input life_raise_done(const struct life *l);
/* Its start on probation. */
pawl_err life_start(struct life *l);
pawl_err life_outcome(struct life *l, enum pw_outcome_kind kind, int event, const char *why);

/* The last change as history shows it; valid until the next call. */
const char *life_line(const struct life *l);
void life_expects(const struct life *l, const char *line);

#define OK(err) assert_int_equal((err), PAWL_OK)

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The one pure function that decides: an entity, an input and the time lead to an update or a
 * refusal. No clock, I/O, lock or allocation. What it returns borrows from what it was given. */
#ifndef PW_STEP_H
#define PW_STEP_H

#include "core/entity.h"

enum pw_input_kind {
    PW_IN_CREATE,
    PW_IN_SEND,    /* an event from outside, or another entity's tell */
    PW_IN_OUTCOME, /* of work */
    PW_IN_MEMO,    /* a value that work decides */
    PW_IN_BEGIN,   /* a start on probation, saved before the work runs */
    PW_IN_DUE,     /* its row of the due index has come */
    PW_IN_DELETE,
    PW_IN_REDO,
    PW_IN_HOLD,
    PW_IN_RELEASE,
    PW_IN_LOST_STATE, /* the machine no longer has its state */
};

/* pawl_outcome's kinds. 0 is none: an outcome that was not made by a function of ours is misuse. */
enum pw_outcome_kind { PW_RAISE = 1, PW_RETRY_LATER, PW_RETRY_AFTER, PW_FAIL, PW_LATER };

struct pw_input {
    enum pw_input_kind kind;
    enum pw_outcome_kind outcome;
    int event;                   /* SEND, or OUTCOME by PW_RAISE */
    bool has_data;               /* SEND, OUTCOME */
    bool no_jitter;              /* OUTCOME */
    const pawl_machine *machine; /* CREATE */
    const char *id;              /* CREATE */
    const char *key;             /* CREATE; "" for none */
    const char *trace;           /* CREATE, SEND; "" keeps the present one */
    const char *message_id;      /* CREATE, SEND; "" for none */
    const char *why;             /* OUTCOME: the text of a retry or failure */
    const char *name;            /* MEMO */
    pawl_bytes data;             /* CREATE, SEND, OUTCOME; MEMO: the value */
    uint64_t delay_ms;           /* CREATE: delayed start; OUTCOME by PW_RETRY_AFTER */
    uint64_t version;            /* SEND, DELETE, REDO: the expected one; 0: any */
    uint64_t epoch;              /* OUTCOME, MEMO, BEGIN: which task */
    uint64_t dice;               /* OUTCOME: random bits for jitter */
    uint32_t attempt;
    const struct pw_effect *effects; /* OUTCOME; their lsn and n are set by the writer */
    size_t effects_count;
};

enum pw_change { PW_UNCHANGED, PW_SAVED, PW_REMOVED };

struct pw_update {
    enum pw_change change;
    bool task;     /* it became ready by this change */
    bool repeated; /* answered again, by `answered` */
    bool brings;   /* something of the user's, that may make the record too large */
    struct pw_entity after;
    struct pw_answer answered;  /* what the sender is told, now or again */
    const struct pw_memo *memo; /* MEMO: the value that counts */
    struct pw_memo memo_new;    /* name NULL: none */
    bool remember;              /* `answered` is added to the entity's answers */
    const struct pw_effect *effects_new;
    size_t effects_new_count;
    struct pw_told told_new; /* lsn 0: none */
    struct pw_happening happening;
};

/* `before` is NULL when there is no such entity. `lsn` is the change's number, if it becomes one.
 * On refusal *why says for which thing; nothing is to be done. PAWL_E_NOT_FOUND, _EXISTS, _NO_EDGE,
 * _VERSION, _STALE, _LIMIT, _USAGE, _BUSY (too many effects wait to be sent), _CORRUPT (a version
 * that was never given out). DUE and LOST_STATE are refused as corrupt only. */
PAWL_MUST_USE pawl_err pw_step(const struct pw_entity *before, const struct pw_input *input,
                               uint64_t now_ms, uint64_t lsn, struct pw_update *update,
                               pawl_why *why);

#endif

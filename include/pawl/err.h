/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors. Every function that can fail returns a pawl_err; outputs are written on success only. A
 * code has a class, and the class alone decides what to do next: the engine's retries, the tool's
 * exit status and a caller's loop all read it. Safe from every thread. */
#ifndef PAWL_ERR_H
#define PAWL_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PAWL_API __attribute__((visibility("default")))
#define PAWL_MUST_USE __attribute__((warn_unused_result))
#define PAWL_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define PAWL_API
#define PAWL_MUST_USE
#define PAWL_PRINTF(at, first)
#endif

/* What an error asks of the caller. */
typedef enum pawl_err_class {
    PAWL_CLASS_OK = 0,
    PAWL_CLASS_TRANSIENT, /* try again later, unchanged */
    PAWL_CLASS_CONFLICT,  /* the world is otherwise: read, decide anew */
    PAWL_CLASS_FINAL,     /* trying again does not help */
    PAWL_CLASS_MISUSE,    /* a bug in the caller, or wrong input */
} pawl_err_class;

/* X(name, class, text). Numbers are not stable across releases; names are. */
#define PAWL_ERRORS(X)                                                                             \
    X(OK, OK, "ok")                                                                                \
    X(E_NOMEM, TRANSIENT, "out of memory")                                                         \
    X(E_BUSY, TRANSIENT, "a queue is full")                                                        \
    X(E_FULL, TRANSIENT, "the store is full")                                                      \
    X(E_CLOSED, TRANSIENT, "the engine is stopping")                                               \
    X(E_UNKNOWN, TRANSIENT,                                                                        \
      "the commit was cut short: done or not done; repeat it under the same message id")           \
    X(E_IO, TRANSIENT, "input or output failed")                                                   \
    X(E_LOCKED, CONFLICT, "another process owns the store")                                        \
    X(E_NOT_FOUND, CONFLICT, "no such entity")                                                     \
    X(E_EXISTS, CONFLICT, "the entity exists")                                                     \
    X(E_NO_EDGE, CONFLICT, "the present state has no edge for the event")                          \
    X(E_VERSION, CONFLICT, "the entity has another version")                                       \
    X(E_STALE, CONFLICT, "the visit or attempt is over")                                           \
    X(E_LIMIT, FINAL, "over a limit")                                                              \
    X(E_CORRUPT, FINAL, "the store is damaged")                                                    \
    X(E_SCHEMA, FINAL, "the store is foreign or of another version")                               \
    X(E_CONFIG, FINAL, "wrong configuration")                                                      \
    X(E_MACHINE, MISUSE, "the machine is refused")                                                 \
    X(E_USAGE, MISUSE, "wrong argument")

typedef enum pawl_err {
#define PAWL_ERR_CODE(name, class, text) PAWL_##name,
    PAWL_ERRORS(PAWL_ERR_CODE)
#undef PAWL_ERR_CODE
        PAWL_ERR_COUNT
} pawl_err;

/* Says what failed, for which thing. Filled on failure only; always ends in '\0'. */
typedef struct pawl_why {
    char text[256];
} pawl_why;

/* The fixed text, class and name ("E_FULL") of a code. Never NULL; static memory. */
PAWL_API const char *pawl_err_text(pawl_err err);
PAWL_API const char *pawl_err_name(pawl_err err);
PAWL_API pawl_err_class pawl_err_class_of(pawl_err err);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be a name, an id, a key, a message id, a traceparent. Checked where it enters; the error
 * names the byte. */
#ifndef PW_NAMES_H
#define PW_NAMES_H

#include "pawl/err.h"

/* Machine, state, event, emit and memo names: 1 to 64 of A-Z a-z 0-9 _ -, not beginning with '_'.
 * `what` begins the error's text: "event". NULL text is refused like an empty one. */
PAWL_MUST_USE pawl_err pw_check_name(const char *what, const char *text, pawl_why *why);

/* A namespace: the same alphabet, 1 to 32. */
PAWL_MUST_USE pawl_err pw_check_namespace(const char *text, pawl_why *why);

/* 1 to 128 bytes of UTF-8 without control characters (U+0000 to U+001F, U+007F to U+009F). */
PAWL_MUST_USE pawl_err pw_check_id(const char *what, const char *text, pawl_why *why);

/* The same, or empty, or NULL. */
PAWL_MUST_USE pawl_err pw_check_optional_id(const char *what, const char *text, pawl_why *why);

/* W3C traceparent of version 00, or empty, or NULL. */
PAWL_MUST_USE pawl_err pw_check_trace(const char *text, pawl_why *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * JetStream's API as it stands on the wire: a request in JSON, an answer in JSON
 * (https://docs.nats.io/reference/reference-protocols/nats_api_reference). Used in place of the
 * library's structs so that what `pawl provision --print` shows is what is sent, whatever the
 * library's version. Blocking; any one thread a connection. */
#ifndef PW_API_H
#define PW_API_H

#include <jansson.h>
#include <nats/nats.h>

#include "base/base.h"

/* Not found, of a stream, a consumer, a message: jsErrCode. */
#define PW_API_NO_STREAM 10059
#define PW_API_NO_CONSUMER 10014
#define PW_API_NO_MESSAGE 10037

/* Sends `request` (NULL: empty) to "$JS.API.<verb>". PAWL_OK: *answer is the caller's. An error in
 * the answer: *code is its err_code, *why its description, and the result PAWL_E_NOT_FOUND for the
 * three above, PAWL_E_CONFIG else. PAWL_E_IO: no answer in time_ms, no responders. */
PAWL_MUST_USE pawl_err pw_api_call(natsConnection *connection, const char *verb,
                                   const json_t *request, uint64_t time_ms, json_t **answer,
                                   int *code, pawl_why *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and messages to a NATS server by hand, as somebody beside pawl would send them. Whatever
 * cannot be done fails the test. */
#ifndef TESTS_ASK_H
#define TESTS_ASK_H

/* A request to JetStream's API, whose answer must be no error. */
void nats_ask(const char *bus, const char *subject, const char *body);

/* A message that a stream takes. header: "Name: value", or NULL. */
void nats_say(const char *bus, const char *subject, const char *header, const char *body);

#endif

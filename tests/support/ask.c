/* SPDX-License-Identifier: Apache-2.0
 *
 * See ask.h. */
#include <stdio.h>
#include <string.h>

#include <nats/nats.h>

#include "support/ask.h"
#include "support/test.h"

#define ANSWER_MS 5000

static void send(const char *bus, natsMsg *message)
{
    natsConnection *connection = NULL;
    natsMsg *answer = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, bus), NATS_OK);
    assert_int_equal(natsConnection_RequestMsg(&answer, connection, message, ANSWER_MS), NATS_OK);
    if (strstr(natsMsg_GetData(answer), "\"error\"") != NULL)
        fail_msg("%s: %s", natsMsg_GetSubject(message), natsMsg_GetData(answer));
    natsMsg_Destroy(answer);
    natsMsg_Destroy(message);
    natsConnection_Destroy(connection);
}

void nats_ask(const char *bus, const char *subject, const char *body)
{
    nats_say(bus, subject, NULL, body);
}

void nats_say(const char *bus, const char *subject, const char *header, const char *body)
{
    natsMsg *message = NULL;
    char name[64] = "";
    char value[64] = "";
    assert_int_equal(natsMsg_Create(&message, subject, NULL, body, (int)strlen(body)), NATS_OK);
    if (header != NULL) {
        assert_int_equal(sscanf(header, "%63[^:]: %63s", name, value), 2);
        assert_int_equal(natsMsgHeader_Set(message, name, value), NATS_OK);
    }
    send(bus, message);
}

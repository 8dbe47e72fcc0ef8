/* SPDX-License-Identifier: Apache-2.0
 *
 * See bus.h. */
#include <ctype.h>
#include <string.h>

#include "base/base.h"
#include "jetstream/bus.h"

static const char plain_scheme[] = "nats://";
static const char tls_scheme[] = "tls://";

/* One item of the list. */
struct server {
    const char *scheme;
    const char *host; /* behind the user and the password */
    size_t size;      /* of host and port */
    size_t whole;     /* of the item */
};

static bool split(const char *item, struct server *server)
{
    *server = (struct server){ .whole = strcspn(item, ",") };
    const char *end = item + server->whole;
    server->scheme = strncmp(item, plain_scheme, strlen(plain_scheme)) == 0 ? plain_scheme
                     : strncmp(item, tls_scheme, strlen(tls_scheme)) == 0   ? tls_scheme
                                                                            : NULL;
    if (server->scheme == NULL)
        return false;
    server->host = item + strlen(server->scheme);
    for (const char *at = server->host; at < end; at++)
        if (*at == '@')
            server->host = at + 1;
    server->size = (size_t)(end - server->host);
    return true;
}

static bool is_port(const char *text, size_t size)
{
    unsigned value = 0;
    for (size_t i = 0; i < size; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
        if (value > 65535)
            return false;
    }
    return value > 0;
}

/* "host", "host:port", "[address]:port". */
static const char *find_fault(const struct server *server)
{
    const char *host = server->host;
    const char *end = host + server->size;
    const char *colon = NULL;
    bool bracketed = server->size > 0 && host[0] == '[';
    for (const char *at = host; at < end; at++) {
        if (!isgraph((unsigned char)*at) || *at == '/')
            return "its host has a byte that no host has";
        if (*at == ']')
            colon = NULL;
        else if (*at == ':' && colon == NULL)
            colon = at;
    }
    size_t size = (size_t)((colon != NULL ? colon : end) - host);
    if (size == 0 || (bracketed && host[size - 1] != ']'))
        return "it has no host";
    if (colon != NULL && !is_port(colon + 1, (size_t)(end - colon - 1)))
        return "its port is not a number from 1 to 65535";
    return NULL;
}

pawl_err pw_bus_check(const char *bus, int *servers, bool *tls, pawl_why *why)
{
    int count = 0;
    bool any_tls = false;
    if (strlen(bus) > PW_BUS_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "longer than %d bytes", PW_BUS_MAX);
    for (const char *at = bus;; at++) {
        struct server server;
        count++;
        if (count > PW_BUS_SERVERS_MAX)
            return pw_fail(why, PAWL_E_CONFIG, "more than %d servers", PW_BUS_SERVERS_MAX);
        if (!split(at, &server))
            return pw_fail(why, PAWL_E_CONFIG, "server %d begins neither with nats:// nor tls://",
                           count);
        const char *fault = find_fault(&server);
        if (fault != NULL)
            return pw_fail(why, PAWL_E_CONFIG, "server %d: %s", count, fault);
        any_tls = any_tls || server.scheme == tls_scheme;
        at += server.whole;
        if (*at == '\0')
            break;
    }
    if (servers != NULL)
        *servers = count;
    if (tls != NULL)
        *tls = any_tls;
    return PAWL_OK;
}

void pw_bus_print(const char *bus, char *to, size_t size)
{
    size_t used = 0;
    pw_print(to, size, "%s", "");
    if (pw_bus_check(bus, NULL, NULL, NULL) != PAWL_OK) {
        pw_print(to, size, "%s", strcmp(bus, "local:") == 0 ? bus : "(malformed)");
        return;
    }
    for (const char *at = bus; *at != '\0';) {
        struct server server;
        (void)split(at, &server); /* was checked */
        pw_print(to + used, size - used, "%s%s%.*s", used > 0 ? "," : "", server.scheme,
                 (int)server.size, server.host);
        used += strlen(to + used);
        at += server.whole;
        at += *at == ',';
    }
}

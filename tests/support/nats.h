/* SPDX-License-Identifier: Apache-2.0
 *
 * A real nats-server for a test: on a free port of 127.0.0.1, with a store directory of its own
 * under /tmp. It ends with the test, also when the test dies. Whatever cannot be done fails the
 * test. The program is PAWL_NATS_SERVER of the environment, or nats-server on the PATH.
 *
 *     struct nats_server server;
 *     nats_server_start(&server, NULL);
 *     ... connect to server.bus ...
 *     nats_server_end(&server); */
#ifndef TESTS_NATS_H
#define TESTS_NATS_H

#include <stdint.h>
#include <sys/types.h>

struct nats_server {
    pid_t pid; /* 0: it is down */
    uint16_t port;
    char bus[48]; /* "nats://127.0.0.1:<port>" */
    char root[64];
    char store[80]; /* JetStream's directory */
    char config[80];
    char log[80];
};

/* Returns when it answers. config: the text of a configuration file (NULL: none), which must leave
 * address, port and store to the command line. */
void nats_server_start(struct nats_server *server, const char *config);

/* As kill -9 does; and SIGTERM, which lets it write what it has. */
void nats_server_kill(struct nats_server *server);
void nats_server_stop(struct nats_server *server);

/* After a kill or stop: same port, same directory. */
void nats_server_restart(struct nats_server *server);

/* It stays there and does nothing, until it goes on. */
void nats_server_freeze(struct nats_server *server);
void nats_server_thaw(struct nats_server *server);

/* While it is down: forgets everything; takes a copy; puts the copy back. */
void nats_server_wipe(struct nats_server *server);
void nats_server_save(struct nats_server *server);
void nats_server_load(struct nats_server *server);

/* Takes one that is down. */
void nats_server_end(struct nats_server *server);

#endif

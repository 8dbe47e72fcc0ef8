/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings: one struct, one table, three readers. Later wins: file, environment, flags.
 * `--help`, the verb `config` and deploy/pawl.conf come from the same table. Main thread. */
#ifndef PW_CONFIG_H
#define PW_CONFIG_H

#include "base/base.h"
#include "base/limits.h"
#include "jetstream/bus.h"
#include "pawl/engine.h"

#define PW_CONFIG_PATH_MAX 1023
#define PW_SETTINGS_MAX 32
/* Prefixes in log-level: what a person types. */
#define PW_LEVELS_MAX 16
#define PW_LEVEL_ID_MAX 31

enum pw_setting_kind {
    PW_SET_TEXT,   /* min to max bytes, no control characters */
    PW_SET_NUMBER, /* a whole number from min to max */
    PW_SET_SIZE,   /* the same, with K, M, G or T */
    PW_SET_SWITCH, /* true or false; as a flag it takes no value */
    PW_SET_NAME,   /* a namespace */
    PW_SET_BUS,    /* "local:", "nats://host:port,..."; its password is never printed */
    PW_SET_SYNC,   /* "commit", "interval:<ms>" */
    PW_SET_LEVELS, /* "info", "info,relay=debug" */
};

struct pw_setting {
    const char *key;
    enum pw_setting_kind kind;
    size_t offset;       /* of a char array of max + 1 bytes, or of a uint64_t */
    const char *initial; /* NULL: unset; then help says what counts */
    uint64_t min;
    uint64_t max;
    const char *value; /* what --help calls the value */
    const char *help;
};

enum pw_origin_kind { PW_FROM_DEFAULT, PW_FROM_FILE, PW_FROM_ENV, PW_FROM_FLAG };

struct pw_origin {
    enum pw_origin_kind kind;
    unsigned line; /* of the file */
};

struct pw_config {
    char config[PW_CONFIG_PATH_MAX + 1];
    char dir[PW_CONFIG_PATH_MAX + 1];
    char bus[PW_BUS_MAX + 1];
    char ns[PW_NAMESPACE_MAX + 1];
    char sync[32];
    char socket[PW_CONFIG_PATH_MAX + 1];
    char log_level[256];
    char nats_user[256];
    char nats_password_file[PW_CONFIG_PATH_MAX + 1];
    char nats_token_file[PW_CONFIG_PATH_MAX + 1];
    char nats_nkey_file[PW_CONFIG_PATH_MAX + 1];
    char nats_creds[PW_CONFIG_PATH_MAX + 1];
    char nats_tls_ca[PW_CONFIG_PATH_MAX + 1];
    char nats_tls_cert[PW_CONFIG_PATH_MAX + 1];
    char nats_tls_key[PW_CONFIG_PATH_MAX + 1];
    uint64_t shards;
    uint64_t outbox_rows_max;
    uint64_t map_size;
    uint64_t readers_max;
    uint64_t stop_ms;
    uint64_t json;
    struct pw_origin origins[PW_SETTINGS_MAX];
};

/* A flag as it was given. */
struct pw_flag {
    size_t setting;
    const char *value;
};

extern const struct pw_setting pw_settings[];
extern const size_t pw_settings_count;

/* The defaults. */
void pw_config_init(struct pw_config *config);

/* PAWL_E_CONFIG: malformed or out of range; *why says the range. Nothing is set then. */
PAWL_MUST_USE pawl_err pw_config_set(struct pw_config *config, size_t setting, const char *text,
                                     struct pw_origin origin, pawl_why *why);

/* The setting's index; pw_settings_count when there is none. */
size_t pw_config_find(const char *key, size_t size);

/* A setting's present value as text, "" when unset. */
void pw_config_print(const struct pw_config *config, size_t setting, char *to, size_t size);

/* Where it was set: "default", "pawl.conf:3", "PAWL_DIR", "--dir". */
void pw_config_print_origin(const struct pw_config *config, size_t setting, char *to, size_t size);

/* "PAWL_STOP_MS" of "stop-ms". */
void pw_config_env_name(size_t setting, char *to, size_t size);

/* --- readers: PAWL_E_CONFIG names file and line, variable or flag ------------------------- */

PAWL_MUST_USE pawl_err pw_config_read_file(struct pw_config *config, const char *path,
                                           pawl_why *why);

/* environment: "NAME=value" strings, ended by NULL. */
PAWL_MUST_USE pawl_err pw_config_read_env(struct pw_config *config, char *const *environment,
                                          pawl_why *why);

/* All three, in their order. The file is read only when environment or flags name one. */
PAWL_MUST_USE pawl_err pw_config_load(struct pw_config *config, const struct pw_flag *flags,
                                      size_t flags_count, char *const *environment, pawl_why *why);

/* --- values that have a form of their own ------------------------------------------------- */

/* Digits only. False: malformed, or outside min to max. */
bool pw_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* PAWL_E_CONFIG. *interval_ms is 0 for "commit". */
PAWL_MUST_USE pawl_err pw_parse_sync(const char *text, uint64_t *interval_ms, pawl_why *why);

/* Which records are wanted. */
struct pw_levels {
    pawl_level rest;
    size_t count;
    struct {
        char id[PW_LEVEL_ID_MAX + 1];
        pawl_level level;
    } of[PW_LEVELS_MAX];
};

PAWL_MUST_USE pawl_err pw_parse_levels(const char *text, struct pw_levels *levels, pawl_why *why);
const char *pw_level_name(pawl_level level);

/* The level for a message id: that of its longest prefix, at a dot. */
pawl_level pw_level_of(const struct pw_levels *levels, const char *id);

/* Where the socket is: the setting, or <dir>/pawl.sock. PAWL_E_CONFIG: too long for a socket's
 * name. */
#define PW_SOCKET_PATH_MAX 107 /* sockaddr_un.sun_path, with its final '\0' */
PAWL_MUST_USE pawl_err pw_config_socket(const struct pw_config *config, char *to, size_t size,
                                        pawl_why *why);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of settings, and how a text becomes a value. */
#include <ctype.h>

#include "app/config.h"
#include "core/names.h"

#define AT(member) offsetof(struct pw_config, member)
#define TEXT_OF(member) AT(member), .max = sizeof(((struct pw_config *)0)->member) - 1

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)
#define SYNC_MS_MAX 60000

/* clang-format off */
const struct pw_setting pw_settings[] = {
    { .key = "config", .kind = PW_SET_TEXT, .offset = TEXT_OF(config), .min = 1, .value = "FILE",
      .help = "file of settings (key = value), read before the environment and the flags; unset: none" },
    { .key = "dir", .kind = PW_SET_TEXT, .offset = TEXT_OF(dir), .initial = "pawl-data", .min = 1, .value = "DIR",
      .help = "data directory, on a local disk; `run` makes it when it is missing" },
    { .key = "bus", .kind = PW_SET_BUS, .offset = TEXT_OF(bus), .initial = "local:", .value = "BUS",
      .help = "what carries tasks: local: (one process, no server), or NATS servers: nats://host:port, tls://host:port, several with commas" },
    { .key = "nats-user", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_user), .min = 1, .value = "NAME",
      .help = "NATS: log in as this user, with nats-password-file" },
    { .key = "nats-password-file", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_password_file), .min = 1, .value = "FILE",
      .help = "NATS: file whose first line is the password" },
    { .key = "nats-token-file", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_token_file), .min = 1, .value = "FILE",
      .help = "NATS: log in with the token in this file's first line" },
    { .key = "nats-nkey-file", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_nkey_file), .min = 1, .value = "FILE",
      .help = "NATS: log in with the NKey whose seed (SU...) is in this file" },
    { .key = "nats-creds", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_creds), .min = 1, .value = "FILE",
      .help = "NATS: log in with a JWT and its seed, as nsc writes them; read at each connect" },
    { .key = "nats-tls-ca", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_tls_ca), .min = 1, .value = "FILE",
      .help = "NATS: authorities to trust, PEM; turns TLS on; unset, with tls://: the system's" },
    { .key = "nats-tls-cert", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_tls_cert), .min = 1, .value = "FILE",
      .help = "NATS: our own certificate, PEM, with nats-tls-key; turns TLS on" },
    { .key = "nats-tls-key", .kind = PW_SET_TEXT, .offset = TEXT_OF(nats_tls_key), .min = 1, .value = "FILE",
      .help = "NATS: the certificate's key, PEM" },
    { .key = "outbox-rows-max", .kind = PW_SET_NUMBER, .offset = AT(outbox_rows_max), .initial = "100000", .min = 1, .max = 1000000000, .value = "N",
      .help = "NATS: commands are refused while so many records of a shard wait for it" },
    { .key = "namespace", .kind = PW_SET_NAME, .offset = TEXT_OF(ns), .initial = "main", .value = "NAME",
      .help = "namespace, fixed when the data directory is made" },
    { .key = "shards", .kind = PW_SET_NUMBER, .offset = AT(shards), .min = 1, .max = PW_SHARDS_MAX, .value = "N",
      .help = "shards, fixed when the data directory is made; unset: as the directory has, 1 for a new one" },
    { .key = "sync", .kind = PW_SET_SYNC, .offset = TEXT_OF(sync), .initial = "commit", .value = "WHEN",
      .help = "commit: answered when it is on the disk; interval:<ms>: synced so often, 1 to 60000. A power cut may then damage the store" },
    { .key = "map-size", .kind = PW_SET_SIZE, .offset = AT(map_size), .min = MIB, .max = 64 * TIB, .value = "SIZE",
      .help = "what a shard may grow to, with K, M, G or T; the file grows as it is used; unset: 1T (1G on 32 bits)" },
    { .key = "readers-max", .kind = PW_SET_NUMBER, .offset = AT(readers_max), .initial = "1024", .min = 16, .max = 100000, .value = "N",
      .help = "concurrent readers of a shard, all processes together" },
    { .key = "stop-ms", .kind = PW_SET_NUMBER, .offset = AT(stop_ms), .initial = "10000", .min = 1, .max = 3600000, .value = "MS",
      .help = "how long `run` waits at its end for work that runs" },
    { .key = "socket", .kind = PW_SET_TEXT, .offset = TEXT_OF(socket), .min = 1, .value = "FILE",
      .help = "the daemon's socket; unset: <dir>/pawl.sock" },
    { .key = "log-level", .kind = PW_SET_LEVELS, .offset = TEXT_OF(log_level), .initial = "info", .value = "LEVELS",
      .help = "error, warn, info or debug; also by message id: info,relay=debug,writer=warn" },
    { .key = "json", .kind = PW_SET_SWITCH, .offset = AT(json), .initial = "false", .value = NULL,
      .help = "verbs answer in JSON, one object a line" },
};
/* clang-format on */
const size_t pw_settings_count = PW_COUNT(pw_settings);
static_assert(PW_COUNT(pw_settings) <= PW_SETTINGS_MAX, "an origin for each setting");

static bool is_text(enum pw_setting_kind kind)
{
    return kind != PW_SET_NUMBER && kind != PW_SET_SIZE && kind != PW_SET_SWITCH;
}

static char *text_of(struct pw_config *config, const struct pw_setting *setting)
{
    return (char *)config + setting->offset;
}

static uint64_t *number_of(struct pw_config *config, const struct pw_setting *setting)
{
    return (uint64_t *)(void *)((char *)config + setting->offset);
}

/* --- numbers and sizes -------------------------------------------------------------------- */

/* The digits at the beginning. NULL: none, or more than 64 bits. */
static const char *parse_digits(const char *text, uint64_t *value)
{
    uint64_t sum = 0;
    if (!isdigit((unsigned char)*text))
        return NULL;
    for (; isdigit((unsigned char)*text); text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return NULL;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return text;
}

bool pw_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    uint64_t parsed = 0;
    const char *end = parse_digits(text, &parsed);
    if (end == NULL || *end != '\0' || parsed < min || parsed > max)
        return false;
    *value = parsed;
    return true;
}

static const char size_letters[] = "KMGT";

static bool parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    uint64_t parsed = 0;
    const char *end = parse_digits(text, &parsed);
    if (end == NULL)
        return false;
    if (*end != '\0') {
        const char *letter = strchr(size_letters, *end);
        if (letter == NULL || end[1] != '\0')
            return false;
        for (ptrdiff_t times = letter - size_letters; times >= 0; times--) {
            if (parsed > UINT64_MAX / KIB)
                return false;
            parsed *= KIB;
        }
    }
    if (parsed < min || parsed > max)
        return false;
    *value = parsed;
    return true;
}

static void print_size(uint64_t value, char *to, size_t size)
{
    size_t times = 0;
    while (value > 0 && value % KIB == 0 && times < strlen(size_letters)) {
        value /= KIB;
        times++;
    }
    char letter[2] = "";
    if (times > 0)
        letter[0] = size_letters[times - 1];
    pw_print(to, size, "%llu%s", (unsigned long long)value, letter);
}

/* --- texts with a form of their own ------------------------------------------------------- */

pawl_err pw_parse_sync(const char *text, uint64_t *interval_ms, pawl_why *why)
{
    static const char interval[] = "interval:";
    if (strcmp(text, "commit") == 0) {
        *interval_ms = 0;
        return PAWL_OK;
    }
    if (strncmp(text, interval, strlen(interval)) == 0 &&
        pw_parse_number(text + strlen(interval), 1, SYNC_MS_MAX, interval_ms))
        return PAWL_OK;
    return pw_fail(why, PAWL_E_CONFIG, "'%.64s' is not commit, nor interval:<ms> of 1 to %d", text,
                   SYNC_MS_MAX);
}

static const char *const level_names[] = {
    [PAWL_ERROR] = "error",
    [PAWL_WARN] = "warn",
    [PAWL_INFO] = "info",
    [PAWL_DEBUG] = "debug",
};

const char *pw_level_name(pawl_level level)
{
    return (size_t)level < PW_COUNT(level_names) ? level_names[level] : "?";
}

static bool parse_level(const char *text, size_t size, pawl_level *level)
{
    for (size_t i = 0; i < PW_COUNT(level_names); i++) {
        if (strlen(level_names[i]) == size && memcmp(level_names[i], text, size) == 0) {
            *level = (pawl_level)i;
            return true;
        }
    }
    return false;
}

/* One item: "level", or "id=level". */
static bool parse_item(const char *item, size_t size, struct pw_levels *levels)
{
    const char *sign = memchr(item, '=', size);
    if (sign == NULL)
        return parse_level(item, size, &levels->rest);
    size_t id_size = (size_t)(sign - item);
    if (id_size == 0 || id_size > PW_LEVEL_ID_MAX || levels->count == PW_LEVELS_MAX)
        return false;
    if (!parse_level(sign + 1, size - id_size - 1, &levels->of[levels->count].level))
        return false;
    memcpy(levels->of[levels->count].id, item, id_size);
    levels->of[levels->count].id[id_size] = '\0';
    levels->count++;
    return true;
}

pawl_err pw_parse_levels(const char *text, struct pw_levels *levels, pawl_why *why)
{
    struct pw_levels parsed = { .rest = PAWL_INFO };
    for (const char *item = text;; item++) {
        size_t size = strcspn(item, ",");
        if (!parse_item(item, size, &parsed))
            return pw_fail(why, PAWL_E_CONFIG,
                           "'%.*s' is not error, warn, info or debug, nor <message id>=<level> "
                           "(at most %d)",
                           (int)(size < 64 ? size : 64), item, PW_LEVELS_MAX);
        item += size;
        if (*item == '\0')
            break;
    }
    *levels = parsed;
    return PAWL_OK;
}

pawl_level pw_level_of(const struct pw_levels *levels, const char *id)
{
    pawl_level level = levels->rest;
    size_t longest = 0;
    for (size_t i = 0; i < levels->count; i++) {
        size_t size = strlen(levels->of[i].id);
        bool fits =
            strncmp(id, levels->of[i].id, size) == 0 && (id[size] == '.' || id[size] == '\0');
        if (fits && size >= longest) {
            level = levels->of[i].level;
            longest = size;
        }
    }
    return level;
}

static pawl_err check_bytes(const struct pw_setting *setting, const char *text, pawl_why *why)
{
    size_t size = strlen(text);
    if (size < setting->min || size > setting->max)
        return pw_fail(why, PAWL_E_CONFIG, "a text of %zu bytes; allowed are %llu to %llu", size,
                       (unsigned long long)setting->min, (unsigned long long)setting->max);
    for (const char *at = text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            return pw_fail(why, PAWL_E_CONFIG, "byte %zu is a control character",
                           (size_t)(at - text) + 1);
    return PAWL_OK;
}

static pawl_err check_text(const struct pw_setting *setting, const char *text, pawl_why *why)
{
    struct pw_levels levels;
    uint64_t interval_ms = 0;
    pawl_err err = check_bytes(setting, text, why);
    if (err != PAWL_OK)
        return err;
    switch (setting->kind) {
    case PW_SET_NAME:
        return pw_check_namespace(text, why) == PAWL_OK ? PAWL_OK : PAWL_E_CONFIG;
    case PW_SET_BUS: /* it may have a password: no error quotes it */
        if (strcmp(text, "local:") == 0 || pw_bus_check(text, NULL, NULL, why) == PAWL_OK)
            return PAWL_OK;
        return pw_fail_in(why, PAWL_E_CONFIG, "neither local: nor servers");
    case PW_SET_SYNC:
        return pw_parse_sync(text, &interval_ms, why);
    case PW_SET_LEVELS:
        return pw_parse_levels(text, &levels, why);
    default:
        return PAWL_OK;
    }
}

/* --- set, print --------------------------------------------------------------------------- */

static pawl_err parse_value(const struct pw_setting *setting, const char *text, uint64_t *value,
                            pawl_why *why)
{
    char min[24] = "";
    char max[24] = "";
    switch (setting->kind) {
    case PW_SET_NUMBER:
        if (pw_parse_number(text, setting->min, setting->max, value))
            return PAWL_OK;
        return pw_fail(why, PAWL_E_CONFIG, "'%.64s' is not a whole number from %llu to %llu", text,
                       (unsigned long long)setting->min, (unsigned long long)setting->max);
    case PW_SET_SIZE:
        if (parse_size(text, setting->min, setting->max, value))
            return PAWL_OK;
        print_size(setting->min, min, sizeof(min));
        print_size(setting->max, max, sizeof(max));
        return pw_fail(why, PAWL_E_CONFIG, "'%.64s' is not a size from %s to %s", text, min, max);
    default:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return pw_fail(why, PAWL_E_CONFIG, "'%.64s' is not true or false", text);
        *value = text[0] == 't';
        return PAWL_OK;
    }
}

pawl_err pw_config_set(struct pw_config *config, size_t setting, const char *text,
                       struct pw_origin origin, pawl_why *why)
{
    assert(setting < pw_settings_count);
    const struct pw_setting *row = &pw_settings[setting];
    uint64_t value = 0;
    pawl_err err =
        is_text(row->kind) ? check_text(row, text, why) : parse_value(row, text, &value, why);
    if (err != PAWL_OK)
        return err;
    if (is_text(row->kind))
        pw_print(text_of(config, row), row->max + 1, "%s", text);
    else
        *number_of(config, row) = value;
    config->origins[setting] = origin;
    return PAWL_OK;
}

void pw_config_init(struct pw_config *config)
{
    static const struct pw_origin origin = { PW_FROM_DEFAULT, 0 };
    *config = (struct pw_config){ .shards = 0 };
    for (size_t i = 0; i < pw_settings_count; i++) {
        if (pw_settings[i].initial == NULL)
            continue;
        pawl_err err = pw_config_set(config, i, pw_settings[i].initial, origin, NULL);
        assert(err == PAWL_OK);
        (void)err; /* the table's own defaults */
    }
}

size_t pw_config_find(const char *key, size_t size)
{
    size_t i = 0;
    while (i < pw_settings_count &&
           (strlen(pw_settings[i].key) != size || memcmp(pw_settings[i].key, key, size) != 0))
        i++;
    return i;
}

void pw_config_print(const struct pw_config *config, size_t setting, char *to, size_t size)
{
    const struct pw_setting *row = &pw_settings[setting];
    const void *at = (const char *)config + row->offset;
    uint64_t value = is_text(row->kind) ? 0 : *(const uint64_t *)at;
    if (row->kind == PW_SET_BUS)
        pw_bus_print(at, to, size);
    else if (is_text(row->kind))
        pw_print(to, size, "%s", (const char *)at);
    else if (row->kind == PW_SET_SWITCH)
        pw_print(to, size, "%s", value != 0 ? "true" : "false");
    else if (value == 0)
        pw_print(to, size, "%s", "");
    else if (row->kind == PW_SET_SIZE)
        print_size(value, to, size);
    else
        pw_print(to, size, "%llu", (unsigned long long)value);
}

pawl_err pw_config_socket(const struct pw_config *config, char *to, size_t size, pawl_why *why)
{
    char path[PW_CONFIG_PATH_MAX + sizeof("/pawl.sock")] = "";
    if (config->socket[0] != '\0')
        pw_print(path, sizeof(path), "%s", config->socket);
    else
        pw_print(path, sizeof(path), "%s/pawl.sock", config->dir);
    if (strlen(path) > PW_SOCKET_PATH_MAX)
        return pw_fail(why, PAWL_E_CONFIG,
                       "the socket's path has %zu bytes, the system takes %d; give a shorter one "
                       "by --socket",
                       strlen(path), PW_SOCKET_PATH_MAX);
    pw_print(to, size, "%s", path);
    return PAWL_OK;
}

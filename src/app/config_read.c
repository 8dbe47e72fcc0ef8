/* SPDX-License-Identifier: Apache-2.0
 *
 * The three readers of the table of settings: INI file, environment, flags. */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>

#include "app/config.h"

static const char env_prefix[] = "PAWL_";

void pw_config_env_name(size_t setting, char *to, size_t size)
{
    pw_print(to, size, "%s%s", env_prefix, pw_settings[setting].key);
    for (char *at = to + strlen(env_prefix); *at != '\0'; at++)
        *at = (char)(*at == '-' ? '_' : toupper((unsigned char)*at));
}

void pw_config_print_origin(const struct pw_config *config, size_t setting, char *to, size_t size)
{
    struct pw_origin origin = config->origins[setting];
    switch (origin.kind) {
    case PW_FROM_FILE:
        pw_print(to, size, "%s:%u", config->config, origin.line);
        break;
    case PW_FROM_ENV:
        pw_config_env_name(setting, to, size);
        break;
    case PW_FROM_FLAG:
        pw_print(to, size, "--%s", pw_settings[setting].key);
        break;
    case PW_FROM_DEFAULT:
    default:
        pw_print(to, size, "default");
    }
}

/* --- the file ----------------------------------------------------------------------------- */

struct reading {
    struct pw_config *config;
    const char *path;
    FILE *file;
    unsigned line;
    bool seen[PW_SETTINGS_MAX];
    pawl_err err; /* the first failure; *why says it */
    pawl_why *why;
};

static void refuse(struct reading *reading, const char *what)
{
    if (reading->err != PAWL_OK)
        return;
    reading->err =
        pw_fail(reading->why, PAWL_E_CONFIG, "%.128s:%u: %s", reading->path, reading->line, what);
}

/* One whole line, for libinih: it would split a longer one, join one that begins with a blank to
 * the one before, and say nothing about a section without keys. */
static char *read_line(char *to, int size, void *stream)
{
    struct reading *reading = stream;
    int used = 0;
    int byte = 0;
    if (reading->err != PAWL_OK)
        return NULL;
    while (used < size - 1 && (byte = getc(reading->file)) != EOF) {
        to[used++] = (char)byte;
        if (byte == '\n')
            break;
    }
    to[used] = '\0';
    if (used == 0)
        return NULL;
    reading->line++;
    if (used == size - 1 && byte != '\n')
        refuse(reading, "the line is too long: at most 198 bytes");
    else if (strlen(to) != (size_t)used)
        refuse(reading, "a byte is 0");
    else if (isblank((unsigned char)to[0]) && to[strspn(to, " \t\r\n")] != '\0')
        refuse(reading, "a line must not begin with a blank");
    else if (to[0] == '[')
        refuse(reading, "unknown section: there are none");
    return reading->err == PAWL_OK ? to : NULL;
}

static int take_pair(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;
    const struct pw_origin origin = { PW_FROM_FILE, reading->line };
    size_t setting = pw_config_find(name, strlen(name));
    pawl_why what = { "" };
    char text[128] = "";
    (void)section; /* refused where it is read */
    if (setting == pw_settings_count || strcmp(name, "config") == 0) {
        pw_print(text, sizeof(text), "unknown key '%.64s'", name);
        refuse(reading, text);
    } else if (reading->seen[setting]) {
        pw_print(text, sizeof(text), "%.64s: given twice", name);
        refuse(reading, text);
    } else if (pw_config_set(reading->config, setting, value, origin, &what) != PAWL_OK) {
        (void)pw_fail_in(&what, PAWL_E_CONFIG, "%s", name); /* the code is refuse's */
        refuse(reading, what.text);
    } else {
        reading->seen[setting] = true;
    }
    return reading->err == PAWL_OK;
}

pawl_err pw_config_read_file(struct pw_config *config, const char *path, pawl_why *why)
{
    struct reading reading = { .config = config, .path = path, .why = why };
    reading.file = fopen(path, "re");
    if (reading.file == NULL)
        return pw_fail(why, PAWL_E_CONFIG, "%.128s: %s", path, strerror(errno));
    int line = ini_parse_stream(read_line, &reading, take_pair, &reading);
    bool unread = ferror(reading.file) != 0;
    int code = errno;
    (void)fclose(reading.file); /* was only read */
    if (reading.err != PAWL_OK)
        return reading.err;
    if (unread)
        return pw_fail(why, PAWL_E_CONFIG, "%.128s: %s", path, strerror(code));
    if (line != 0)
        return pw_fail(why, PAWL_E_CONFIG, "%.128s:%d: not a line of the form key = value", path,
                       line);
    return PAWL_OK;
}

/* --- environment and flags ---------------------------------------------------------------- */

/* Tests' own variables. */
static bool is_tests(const char *name, size_t size)
{
    static const char *const names[] = { "PAWL_SEED", "PAWL_CRASH" };
    for (size_t i = 0; i < PW_COUNT(names); i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
            return true;
    return false;
}

static size_t find_env(const char *name, size_t size)
{
    char known[64] = "";
    size_t i = 0;
    for (; i < pw_settings_count; i++) {
        pw_config_env_name(i, known, sizeof(known));
        if (strlen(known) == size && memcmp(known, name, size) == 0)
            break;
    }
    return i;
}

pawl_err pw_config_read_env(struct pw_config *config, char *const *environment, pawl_why *why)
{
    static const struct pw_origin origin = { PW_FROM_ENV, 0 };
    for (; *environment != NULL; environment++) {
        const char *name = *environment;
        size_t size = strcspn(name, "=");
        if (strncmp(name, env_prefix, strlen(env_prefix)) != 0 || name[size] == '\0' ||
            is_tests(name, size))
            continue;
        size_t setting = find_env(name, size);
        if (setting == pw_settings_count)
            return pw_fail(why, PAWL_E_CONFIG, "unknown variable %.*s", (int)size, name);
        pawl_err err = pw_config_set(config, setting, name + size + 1, origin, why);
        if (err != PAWL_OK)
            return pw_fail_in(why, err, "%.*s", (int)size, name);
    }
    return PAWL_OK;
}

static pawl_err read_flags(struct pw_config *config, const struct pw_flag *flags, size_t count,
                           pawl_why *why)
{
    static const struct pw_origin origin = { PW_FROM_FLAG, 0 };
    for (size_t i = 0; i < count; i++) {
        pawl_err err = pw_config_set(config, flags[i].setting, flags[i].value, origin, why);
        if (err != PAWL_OK)
            return pw_fail_in(why, err, "--%s", pw_settings[flags[i].setting].key);
    }
    return PAWL_OK;
}

pawl_err pw_config_load(struct pw_config *config, const struct pw_flag *flags, size_t flags_count,
                        char *const *environment, pawl_why *why)
{
    struct pw_config named;
    struct pw_config loaded;
    pw_config_init(&named); /* environment and flags alone: do they name a file? */
    pawl_err err = pw_config_read_env(&named, environment, why);
    if (err == PAWL_OK)
        err = read_flags(&named, flags, flags_count, why);
    if (err != PAWL_OK)
        return err;
    pw_config_init(&loaded);
    if (named.config[0] != '\0')
        err = pw_config_read_file(&loaded, named.config, why);
    if (err == PAWL_OK)
        err = pw_config_read_env(&loaded, environment, why);
    if (err == PAWL_OK)
        err = read_flags(&loaded, flags, flags_count, why);
    if (err == PAWL_OK)
        *config = loaded;
    return err;
}

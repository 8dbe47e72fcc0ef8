/* SPDX-License-Identifier: Apache-2.0
 *
 * See secrets.h. */
#include <errno.h>
#include <stdio.h>

#include "app/secrets.h"

/* The first line, without its end. */
static pawl_err read_line(const char *key, const char *path, char to[PW_SECRET_MAX + 1],
                          pawl_why *why)
{
    char line[PW_SECRET_MAX + 3] = ""; /* "\r\n" or one byte too many */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return pw_fail(why, PAWL_E_CONFIG, "%s: %.128s: %s", key, path, strerror(errno));
    bool read = fgets(line, sizeof(line), file) != NULL;
    int code = ferror(file) != 0 ? errno : 0;
    (void)fclose(file); /* was only read */
    size_t size = strcspn(line, "\r\n");
    line[size] = '\0';
    if (code != 0)
        return pw_fail(why, PAWL_E_CONFIG, "%s: %.128s: %s", key, path, strerror(code));
    if (!read || size == 0 || size > PW_SECRET_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "%s: %.128s: its first line has %s", key, path,
                       size > PW_SECRET_MAX ? "more than 1023 bytes" : "nothing");
    pw_print(to, PW_SECRET_MAX + 1, "%s", line);
    return PAWL_OK;
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

pawl_err pw_secrets_read(struct pw_secrets *secrets, const struct pw_config *config, pawl_why *why)
{
    pawl_err err = PAWL_OK;
    *secrets = (struct pw_secrets){ .nats = { .user = or_null(config->nats_user),
                                              .nkey_seed_file = or_null(config->nats_nkey_file),
                                              .creds_file = or_null(config->nats_creds),
                                              .tls_ca_file = or_null(config->nats_tls_ca),
                                              .tls_cert_file = or_null(config->nats_tls_cert),
                                              .tls_key_file = or_null(config->nats_tls_key) } };
    if (config->nats_password_file[0] != '\0') {
        err = read_line("nats-password-file", config->nats_password_file, secrets->password, why);
        secrets->nats.password = secrets->password;
    }
    if (err == PAWL_OK && config->nats_token_file[0] != '\0') {
        err = read_line("nats-token-file", config->nats_token_file, secrets->token, why);
        secrets->nats.token = secrets->token;
    }
    return err;
}

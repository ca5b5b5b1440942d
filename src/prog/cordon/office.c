/* Root may look after another user's runs: CORDON_STATE names that user's folder. What lies there is
 * the user's own, so root does not open it: it first takes the owner's id for good. Who answers or
 * stops is read before that: it stays root who did it. */
#include "office.h"

#include "programs.h"
#include "sys/state.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int become_owner(struct err *err)
{
    char path[STATE_PATH_MAX];
    struct stat st;
    int r = state_path(path, sizeof path, err);
    if (r < 0 || geteuid() != 0 || lstat(path, &st) < 0 || st.st_uid == 0)
        return r;
    if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
        setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
        return err_sys(err, "become uid %u, whose state folder it is", (unsigned)st.st_uid);
    return 0;
}

int office_open(struct office *o, struct err *err)
{
    struct err none = ERR_INIT;
    memset(o, 0, sizeof *o);
    int r = gate_lineage_read(&o->self, getpid(), err);
    if (r < 0)
        return r;
    gate_lineage_name(&o->self, o->who, sizeof o->who);
    r = become_owner(err);
    if (r < 0)
        return r;
    gate_config_init(&o->config);
    if (programs_find("cordon-approvals", o->approvals, sizeof o->approvals, &none) == 0)
        o->config.approvals_program = o->approvals;
    return gate_open(&o->config, -1, &o->gate, err);
}

void office_close(struct office *o)
{
    gate_close(o->gate);
    o->gate = NULL;
}

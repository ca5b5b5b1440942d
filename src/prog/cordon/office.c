/* Root may look after another user's runs: CORDON_STATE names that user's folder. What lies there is
 * the user's own, so root does not open it: it first takes the owner's id for good. Who answers or
 * stops is read before that: it stays root who did it.
 *
 * Stopping is for when things have gone wrong, so it depends on as little as possible: a broken policy
 * or a full disk does not keep anybody from it. Everything else is refused then. */
#include "office.h"

#include "programs.h"
#include "sys/state.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (setenv("CORDON_STATE", path, 1) < 0 || unsetenv("HOME") < 0 ||
        unsetenv("XDG_CONFIG_HOME") < 0) /* root's own settings are not the owner's */
        return err_sys(err, "change the environment");
    if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
        setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
        return err_sys(err, "become uid %u, whose state folder it is", (unsigned)st.st_uid);
    return 0;
}

int office_open(struct office *o, bool emergency, struct err *err)
{
    char approvals[4096];
    struct err none = ERR_INIT;
    memset(o, 0, sizeof *o);
    int r = gate_lineage_read(&o->self, getpid(), err);
    if (r < 0)
        return r;
    gate_lineage_name(&o->self, o->who, sizeof o->who);
    r = become_owner(err);
    if (r < 0)
        return r;
    bool found = programs_find("cordon-approvals", approvals, sizeof approvals, &none) == 0;
    r = flow_house_open(&o->house, NULL, err);
    if (r == 0)
        r = flow_house_staff(&o->house, found ? approvals : NULL, err);
    o->gate = o->house.gate;
    if (r < 0 && emergency) {
        o->unrecorded = *err;
        gate_config_init(&o->bare);
        r = gate_open(&o->bare, -1, &o->gate, err);
    }
    return r;
}

int office_close(struct office *o, struct err *err)
{
    int lost = o->house.audit_failed;
    if (o->gate != o->house.gate)
        gate_close(o->gate);
    flow_house_close(&o->house);
    o->gate = NULL;
    if (o->unrecorded.code < 0)
        return err_set(err, ERR_STATE, "done, but it is not recorded: %.180s", o->unrecorded.msg);
    return lost ? err_set(err, ERR_STATE, "done, but the audit could not record all of it") : 0;
}

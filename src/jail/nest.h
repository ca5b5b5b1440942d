/* cordon-nest: what sits above the guest while it runs.
 *
 * Takes:   a socket to the supervisor and a descriptor of the quota'd file system.
 * Gives:   one EXITED message, and the certainty that nothing below it is left.
 * Never:   reads anything of the guest.
 * Runs in: cordon-nest, pid 1 of the jail.
 */
#ifndef JAIL_NEST_H
#define JAIL_NEST_H

/* QUOTA is -1 where there is none. Returns the exit status. */
int jail_nest_main(int control, int quota);

#endif

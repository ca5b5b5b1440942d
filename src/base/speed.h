/* SPDX-License-Identifier: Apache-2.0 */
/* What is done for speed alone. Each can be left out of a build, and then everything works as before, only slower.
 *
 * Takes:   nothing; a build without one of them defines it as 0 (-DSPEED_EARLY=0).
 * Gives:   one constant for each, which the file that does it asks.
 * Never:   decides what is allowed or refused.
 * Runs in: every process.
 *
 * `make gains` builds without each in turn, measures both builds by turns and prints what each gains. The file that does
 * it states the figure. What shows no gain any more is removed, here and there.
 */
#ifndef BASE_SPEED_H
#define BASE_SPEED_H

#ifndef SPEED_EARLY /* jail/builder/early.c: a worker is executed while its root is built */
#define SPEED_EARLY 1
#endif
#ifndef SPEED_OTHER_CPU /* sys/cpu.h: a new child of the builder is moved to another CPU */
#define SPEED_OTHER_CPU 1
#endif
#ifndef SPEED_NET_ASIDE /* jail/net.c: a process of its own makes the network namespace */
#define SPEED_NET_ASIDE 1
#endif
#ifndef SPEED_WATCH_LATER /* jail/supervisor/lease.c: a leased child is watched while its worker reads its job */
#define SPEED_WATCH_LATER 1
#endif
#ifndef SPEED_CONNECT_FIRST /* flow/lease.c: the client connects to the holder before it asks the gate */
#define SPEED_CONNECT_FIRST 1
#endif
#ifndef SPEED_REMAP /* worker/frame/remap.c: a template's memory is a file that its children map */
#define SPEED_REMAP 1
#endif
#ifndef SPEED_REMAP_HUGE /* worker/frame/remap.c: that file has large pages */
#define SPEED_REMAP_HUGE 1
#endif
#ifndef SPEED_REMAP_CONSTANTS /* worker/frame/remap.c: constants that the loader wrote are in such a file, too */
#define SPEED_REMAP_CONSTANTS 1
#endif
#ifndef SPEED_REMAP_CODE /* worker/frame/remap.c: the code that every child runs, too */
#define SPEED_REMAP_CODE 1
#endif
#ifndef SPEED_REHEARSE /* worker/frame/remap.c: a child fetches the pages that a rehearsal touched */
#define SPEED_REHEARSE 1
#endif
#ifndef SPEED_REHEARSE_TWICE /* worker/frame/remap.c: first those that every program writes */
#define SPEED_REHEARSE_TWICE 1
#endif
#ifndef SPEED_FEW_MAPS /* worker/frame/remap.c: no map for what nobody reads, one for a library's constants; objects lie in one (worker/python/main.c) */
#define SPEED_FEW_MAPS 1
#endif
#ifndef SPEED_HOLES /* worker/frame/holes.c: children allocate from memory that lies in one piece */
#define SPEED_HOLES 1
#endif
#ifndef SPEED_LARGE_PAGE /* worker/python/interp.c: the objects of a cold start are in one large page */
#define SPEED_LARGE_PAGE 1
#endif
#ifndef SPEED_FROZEN /* worker/python/freeze.py: modules of the start are in the program; without it there are no figures either */
#define SPEED_FROZEN 1
#endif
#ifndef SPEED_GC_LATER /* worker/python/interp.c: the garbage collector begins after the start */
#define SPEED_GC_LATER 1
#endif
#ifndef SPEED_NO_ZIPIMPORT /* worker/python/interp.c: guarded programs start without zipimport */
#define SPEED_NO_ZIPIMPORT 1
#endif

#endif

#!/bin/sh
# Runs an ELF of a project elsewhere on QEMU, by this tree's host tool: `runner.sh ELF [ARGS]`, the `runner` of the project's
# .cargo/config.toml. Cargo reads its configuration from the folder in which it is started, and the project's names the kernel's
# target; the tool is built for the host, so it is started here.
case "$1" in
    /*) elf=$1 ;;
    *) elf=$PWD/$1 ;;
esac
shift
cd "$(dirname "$0")" || exit 2
exec cargo xtask runner "$elf" "$@"

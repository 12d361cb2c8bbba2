#!/bin/sh
# A C compiler that keeps what it has made: of the same preprocessed text with the same flags it takes the file of an
# earlier run. Called as `cc ... -o FILE`; KEPT_CC is the compiler, KEPT_OBJECTS the folder.
flags="" output="" next=""
for argument; do
  [ "$next" = -o ] && output="$argument"
  case "$argument" in -*) flags="$flags $argument" ;; esac
  next="$argument"
done
"$KEPT_CC" "$@" -E -P 2>/dev/null || exec "$KEPT_CC" "$@"
kept="$KEPT_OBJECTS/$( ("$KEPT_CC" --version && echo "$flags" && cat "$output") | sha256sum | cut -c 1-64)"
if [ ! -f "$kept" ]; then
  "$KEPT_CC" "$@" || exit
  cp "$output" "$kept.$$" && mv "$kept.$$" "$kept"
fi
cp "$kept" "$output"

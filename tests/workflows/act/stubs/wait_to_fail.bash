# Let a step that fails wait before it ends: act ends a failed step without reading all that it printed
# (`HostEnvironment.exec` returns the error of `cmd.Run()` and does not wait for `copyPtyOutput`).
trap 'status=$?; [ "$status" = 0 ] || sleep 2; exit "$status"' EXIT

"""What looks at flows while they run, a file each: `fluxloom.run.monitor.Monitor` says what that is."""

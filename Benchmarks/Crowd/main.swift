import Glibc
import ProgramSupport

// Measures one session with very many peers over TCP on loopback. The host is a process, and so are every 2,000 guests.
StandardStreams.begin(for: CrowdProgram.name)
exit(await CrowdProgram.run(Array(CommandLine.arguments.dropFirst())))

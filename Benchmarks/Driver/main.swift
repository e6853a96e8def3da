import Glibc
import ProgramSupport

StandardStreams.begin(for: "bench")
exit(Driver.run(Array(CommandLine.arguments.dropFirst())))

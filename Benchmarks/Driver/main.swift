import Glibc
import ProgramLife

StandardStreams.begin(for: "bench")
exit(Driver.run(Array(CommandLine.arguments.dropFirst())))

import Glibc
import ProgramSupport

StandardStreams.begin(for: "lab")
exit(CommandLineOfLab.run(Array(CommandLine.arguments.dropFirst())))

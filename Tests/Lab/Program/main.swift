import Glibc
import ProgramLife

StandardStreams.begin(for: "lab")
exit(CommandLineOfLab.run(Array(CommandLine.arguments.dropFirst())))

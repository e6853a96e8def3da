import Glibc
import ProgramSupport

StandardStreams.begin(for: "nigh")
// Block the signals before any other thread exists, so that no other thread receives one.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = SystemRequirements.shortage { exit(NighProgram.reportShortage(shortage, arguments)) }
Task.detached { exit(await NighProgram.run(arguments)) }
Interrupts.wait()

import Glibc
import ProgramSupport

StandardStreams.begin(for: "nigh")
let arguments = Array(CommandLine.arguments.dropFirst())
if let help = HelpRequest(arguments) { exit(help.run()) }
// Block the signals before any other thread exists, so that no other thread receives one.
Interrupts.block()
if let shortage = SystemRequirements.shortage { exit(NighProgram.reportShortage(shortage, arguments)) }
Task.detached { exit(await NighProgram.run(arguments)) }
Interrupts.wait()

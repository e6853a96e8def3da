import Glibc
import ProgramLife

StandardStreams.begin(for: "nigh")
// Block the signals before any other thread exists, so that no other thread receives one.
Interrupts.block()
let arguments = Array(CommandLine.arguments.dropFirst())
if let shortage = ProgramNeeds.shortage { exit(NighProgram.refuse(arguments, shortage)) }
Task.detached { exit(await NighProgram.run(arguments)) }
Interrupts.wait()

import ChildPrograms
import Testing

@testable import lab

/// Examples/Hello on two adapters of one machine.
@Suite struct BluetoothHelloTests {
    @Test func theHelloProgramCarriesLinesOverBluetooth() async throws {
        let program = try BuiltPackages.build("Examples/Hello") + "/Hello"
        try await EmulatedTrial.run {
            let machine = try LabProcess(command: [
                "\(BluetoothMachineTests.folder)/machine", "--time-limit", "960", "--", "bash", "-euc",
                #"""
                cd /tmp
                begin() {
                    mkfifo "$1.input"
                    XDG_DATA_HOME=/tmp/$1.data stdbuf -oL "$0" "$1" "bluetooth:adapter=$2,interval=1" \
                        <"$1.input" >"$1" 2>&1 &
                }
                finish() {
                    for name in Puma Lynx; do sed "s/^/$name /" $name; done
                    exit $1
                }
                until_said() {
                    until grep --quiet "$2" "$1"; do
                        sleep 0.1
                        if ((SECONDS > 930)); then
                            echo "$1 does not say $2"
                            finish 1
                        fi
                    done
                }
                begin Puma hci0
                exec 3>Puma.input
                begin Lynx hci1
                exec 4>Lynx.input
                until_said Puma "^Lynx .* is connected over bluetooth"
                until_said Lynx "^Puma .* is connected over bluetooth"
                echo "good morning" >&3
                until_said Lynx "Puma: good morning"
                echo "good night" >&4
                until_said Puma "Lynx: good night"
                exec 3>&- 4>&-
                wait
                echo both have talked
                finish 0
                """#, program,
            ])
            let ending = await machine.end(within: .seconds(1_020))
            var trial = EmulatedTrial(output: machine.output)
            trial.check(ending == .exited(0), "the machine \(ending)")
            Self.checkLines(&trial)
            return trial
        }
    }

    /// Checks what both have printed: each line of the other one, once.
    private static func checkLines(_ trial: inout EmulatedTrial) {
        let lines = trial.output.split(separator: "\n")
        trial.check(lines.contains("both have talked"), "they have not talked")
        for (sender, words) in [("Lynx Puma: ", "good morning"), ("Puma Lynx: ", "good night")] {
            let said = lines.filter { $0.hasPrefix(sender) }.map { String($0.dropFirst(sender.count)) }
            trial.check(!said.isEmpty, "\"\(words)\" did not come")
            trial.checkPromise(said.isEmpty || said == [words], "instead of \"\(words)\" came \(said)")
        }
    }
}

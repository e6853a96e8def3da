import ChildPrograms
import Testing

@testable import lab

/// Examples/Hello on two adapters of one machine.
@Suite struct BluetoothHelloTests {
    @Test func theHelloProgramCarriesLinesOverBluetooth() async throws {
        let program = try BuiltPackages.build("Examples/Hello") + "/Hello"
        let output = try await Permits.machines.run {
            let machine = try LabProcess(command: [
                "\(BluetoothMachineTests.folder)/machine", "--time-limit", "180", "--", "bash", "-euc",
                #"""
                cd /tmp
                begin() {
                    mkfifo "$1.input"
                    XDG_DATA_HOME=/tmp/$1.data stdbuf -oL "$0" "$1" "bluetooth:adapter=$2,interval=1" \
                        <"$1.input" >"$1" 2>&1 &
                }
                until_said() {
                    until grep --quiet "$2" "$1"; do
                        sleep 0.1
                        if ((SECONDS > 160)); then
                            echo "$1 does not say $2"
                            cat Puma Lynx
                            exit 1
                        fi
                    done
                }
                begin Puma hci0
                exec 3>Puma.input
                begin Lynx hci1
                exec 4>Lynx.input
                until_said Puma "Lynx is here"
                until_said Lynx "Puma is here"
                echo "good morning" >&3
                until_said Lynx "Puma: good morning"
                echo "good night" >&4
                until_said Puma "Lynx: good night"
                exec 3>&- 4>&-
                wait
                echo both have talked
                """#, program,
            ])
            #expect(await machine.end(within: .seconds(240)) == .exited(0), "\(machine.output)")
            return machine.output
        }
        #expect(output.hasSuffix("both have talked\n"), "\(output)")
    }
}

import Testing

@testable import lab

/// Two programs of one machine, each with an adapter of its own.
@Suite struct BluetoothPeersTests {
    /// Ten mebibytes go each way at once, in messages whose every byte is checked where they arrive.
    @Test func findInviteTalkAndLeave() async throws {
        let output = try await Permits.machines.run {
            let machine = try LabProcess(command: [
                "\(BluetoothMachineTests.folder)/machine", "--time-limit", "180", "--", "bash", "-euc",
                #"""
                cd /tmp
                begin() {
                    mkfifo "$1.input"
                    "$0" peer --name "$1" --transport "bluetooth:adapter=$2" <"$1.input" >"$1" 2>&1 &
                }
                until_said() { until grep --quiet "$2" "$1"; do sleep 0.05; done; }
                begin one hci0
                exec 3>one.input
                begin two hci1
                exec 4>two.input
                for name in one two; do until_said $name ^ready; done
                one=$(sed -n 's/^ready \([^ ]*\).*/\1/p' one)
                two=$(sed -n 's/^ready \([^ ]*\).*/\1/p' two)
                until_said one "^state $two unavailable available"
                echo "invite $two" >&3
                for name in one two; do until_said $name '^state .* connecting connected'; done
                echo "send $two 640 16384 0" >&3
                echo "send $one 640 16384 0" >&4
                for name in one two; do until_said $name '^received .* 640$'; done
                echo "leave $two" >&3
                until_said two '^state .* connected disconnected'
                until_said one '^left'
                echo quit >&3
                echo quit >&4
                wait
                sed 's/^/one /' one
                sed 's/^/two /' two
                """#, try LabProcess.program(),
            ])
            #expect(await machine.end(within: .seconds(220)) == .exited(0), "\(machine.output)")
            return machine.output
        }
        let lines = output.split(separator: "\n").map { $0.split(separator: " ") }
        for name in ["one", "two"] {
            let own = lines.filter { $0.count > 1 && $0[0] == name }
            let received = own.filter { $0[1] == "received" }.map { $0.last.flatMap { Int($0) } }
            #expect(received == Array(1...640), "what \(name) got")
            let states = own.filter { $0[1] == "state" && $0.count > 4 }.map { $0[4] }
            #expect(
                states.prefix(4) == ["available", "connecting", "connected", "disconnected"],
                "\(name): \(own.filter { $0[1] == "state" }.map { $0.joined(separator: " ") })")
            let wrong = own.filter { ["damaged", "failed", "trouble", "suspected"].contains($0[1]) }
            #expect(wrong.isEmpty, "\(wrong.map { $0.joined(separator: " ") })")
            #expect(own.last?[1] == "closed")
        }
    }
}

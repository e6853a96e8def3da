import class ChildPrograms.Permits
import Testing

@testable import lab

/// Tests two programs of one machine, each with an adapter of its own.
@Suite struct BluetoothPeersTests {
    /// 10 MiB go each way at once, in messages whose bytes are all checked by the receiver. A link may break on the
    /// way: the promise is that the conversation continues and that every message arrives once and in order.
    @Test func twoPeersConnectExchangeMessagesAndLeave() async throws {
        try await EmulatedTrial.run { Self.trial(of: try await Self.exchangeMessages()) }
    }

    /// Returns what two programs printed, and how the machine ended on which they ran.
    private static func exchangeMessages() async throws -> String {
        let machine = try LabProcess(command: [
            "\(BluetoothMachineTests.folder)/machine", "--time-limit", "960", "--", "bash", "-euc",
            #"""
            cd /tmp
            begin() {
                mkfifo "$1.input"
                "$0" peer --name "$1" --transport "bluetooth:adapter=$2" <"$1.input" >"$1" 2>&1 &
            }
            finish() {
                for name in one two; do sed "s/^/$name /" $name; done
                exit $1
            }
            until_said() {
                until grep --quiet "$2" "$1"; do
                    sleep 0.05
                    if ((SECONDS > 930)); then
                        echo "$1 does not say $2"
                        finish 1
                    fi
                done
            }
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
            finish 0
            """#, try LabProcess.program(),
        ])
        let ending = await machine.end(within: .seconds(1_020))
        return "\(machine.output)\nthe machine \(ending)"
    }

    /// Judges what two programs printed.
    private static func trial(of output: String) -> EmulatedTrial {
        let lines = output.split(separator: "\n").map { $0.split(separator: " ") }
        var trial = EmulatedTrial(output: output)
        trial.check(
            output.hasSuffix("\nthe machine \(Child.Ending.exited(0))"), "the machine did not end well")
        for name in ["one", "two"] {
            let own = lines.filter { $0.count > 1 && $0[0] == name }
            trial.check(
                own.filter { $0[1] == "received" }.map { $0.last.flatMap { Int($0) } ?? 0 }, are: 640,
                at: name)
            trial.checkUndamaged(!own.contains { $0[1] == "damaged" }, at: name)
            let states = own.filter { $0[1] == "state" && $0.count > 4 }.map { String($0[4]) }
            let course = OneConversation(states: states)
            trial.check(course.isWhole, "\(name) was \(states.joined(separator: ", "))")
            for line in own where ["failed", "trouble"].contains(line[1]) {
                trial.check(false, line.joined(separator: " "))
            }
            trial.check(own.last?[1] == "closed", "\(name) did not close")
        }
        return trial
    }

    @Test(
        "A conversation may replace its links; a second conversation, or one without an end, is a failure",
        arguments: [
            ("available connecting connected disconnected available", true),
            (
                "available connecting connected reconnecting connected reconnecting connected disconnected",
                true
            ),
            ("available connecting connected reconnecting disconnected unavailable", true),
            ("available connecting connected disconnected available connecting connected", false),
            ("available connecting connected reconnecting", false),
            ("available connecting available connecting connected disconnected", false),
            ("", false),
        ])
    func aCompleteConversationIsRecognized(states: String, isWhole: Bool) {
        let course = OneConversation(states: states.split(separator: " ").map(String.init))
        #expect(course.isWhole == isWhole)
    }
}

import class ChildPrograms.Permits
import Testing

@testable import lab

/// Tests two programs of one machine, each with an adapter of its own.
@Suite struct BluetoothPeersTests {
    /// 10 MiB go each way at once, in messages whose bytes are all checked by the receiver. A link may break on the
    /// way: the promise is that the conversation continues and that every message arrives once and in order. Emulated
    /// controllers may get stuck before two programs meet, so there is a second attempt with new ones. There is none
    /// after a message that did not arrive as it was sent.
    @Test func twoPeersConnectExchangeMessagesAndLeave() async throws {
        var tries: [(faults: [String], isGrave: Bool, output: String)] = []
        while tries.count < 2, tries.last?.faults.isEmpty != true, !tries.contains(where: { $0.isGrave }) {
            let output = try await Permits.machines.run { try await Self.exchangeMessages() }
            let (faults, isGrave) = Self.faults(in: output)
            tries.append((faults, isGrave, output))
        }
        let said = tries.map { "\($0.faults.joined(separator: "\n"))\n\($0.output)" }
        #expect(tries.last?.faults == [], "\(said.joined(separator: "\n\n"))")
    }

    /// Returns what two programs printed, and how the machine ended on which they ran.
    private static func exchangeMessages() async throws -> String {
        let machine = try LabProcess(command: [
            "\(BluetoothMachineTests.folder)/machine", "--time-limit", "180", "--", "bash", "-euc",
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
                    if ((SECONDS > 160)); then
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
        let ending = await machine.end(within: .seconds(220))
        return "\(machine.output)\nthe machine \(ending)"
    }

    /// Returns what is not as it must be, and whether one of the faults concerns a message that arrived.
    private static func faults(in output: String) -> (faults: [String], isGrave: Bool) {
        let lines = output.split(separator: "\n").map { $0.split(separator: " ") }
        var faults: [String] = []
        var isGrave = false
        func check(_ holds: Bool, _ words: @autoclosure () -> String) { if !holds { faults.append(words()) } }
        check(output.hasSuffix("\nthe machine \(Child.Ending.exited(0))"), "the machine did not end well")
        for name in ["one", "two"] {
            let own = lines.filter { $0.count > 1 && $0[0] == name }
            let received = own.filter { $0[1] == "received" }.map { $0.last.flatMap { Int($0) } }
            check(received.count == 640, "\(name) got \(received.count) messages")
            let isInOrder = zip(received, 1...).allSatisfy { $0 == $1 }
            check(isInOrder, "something came to \(name) twice or out of order, or was left out")
            if !isInOrder || own.contains(where: { $0[1] == "damaged" }) { isGrave = true }
            let states = own.filter { $0[1] == "state" && $0.count > 4 }.map { String($0[4]) }
            let course = OneConversation(states: states)
            check(course.isWhole, "\(name) was \(states.joined(separator: ", "))")
            for line in own where ["damaged", "failed", "trouble"].contains(line[1]) {
                faults.append(line.joined(separator: " "))
            }
            check(own.last?[1] == "closed", "\(name) did not close")
        }
        return (faults, isGrave)
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

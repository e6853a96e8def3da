import Glibc
import NighTestKit
import Testing

@testable import lab

/// Tests that the machine with Bluetooth (`Tests/Lab/bluetooth/machine`) does what tests of Bluetooth rely on. Each
/// test boots some machines, so the tests run one after the other.
@Suite(.serialized) struct BluetoothMachineTests {
    /// The program that talks over RFCOMM without bluetoothd.
    private static let probe = "\(LabProcess.bluetooth)/probes/rfcomm"
    private static let program = "\(LabProcess.bluetooth)/machine"

    @Test func `A commands output errors and status are passed on`() async throws {
        let command = "read -r line || echo no input; echo out; echo wrong >&2; echo $MOOD; exit 7"
        let machine = try LabProcess(command: [
            "bash", "-c",
            #"{ "$@" 2>&3 | sed 's/^/output: /'; exit "${PIPESTATUS[0]}"; } 3> >(sed 's/^/error: /')"#,
            "bash", Self.program, "--time-limit", "480", "--adapters", "0", "--environment",
            "MOOD=a good one", "--", "sh", "-c", command,
        ])
        #expect(await machine.end(within: .seconds(60)) == .exited(7), "\(machine.output)")
        try await until("all is printed") { machine.output.contains("error: wrong\n") }
        #expect(machine.output.contains("output: no input\noutput: out\noutput: a good one\n"))
        try await machine.expectNothing()
    }

    /// Terminals change bytes unless they are told not to.
    @Test func `Output arrives unchanged`() async throws {
        let bytes = #"head -c 3000000 /dev/zero | tr '\0' '\n'; printf '\003\004\021\023\t\r\n\377'"#
        let check =
            #"md5sum <(sh -c "$1") <("$0" --time-limit 480 --adapters 0 -- sh -c "$1") | cut -d ' ' -f 1 | uniq | wc -l"#
        let machine = try LabProcess(command: ["bash", "-c", check, Self.program, bytes])
        #expect(await machine.end(within: .seconds(60)) == .exited(0))
        #expect(machine.output == "1\n")
    }

    @Test func `Only writes to the writable folder are kept`() async throws {
        let kept = TemporaryFolder()
        let lost = "\(kept.path)-lost"
        let machine = try LabProcess.machine(
            "--adapters", "0", "--writable", kept.path,
            running: ["sh", "-c", "touch \(lost) && ls \(lost) && touch \(kept.path)/file"])
        #expect(await machine.end(within: .seconds(60)) == .exited(0), "\(machine.output)")
        #expect(machine.output == "\(lost)\n")
        #expect(access(lost, F_OK) != 0)
        #expect(access("\(kept.path)/file", F_OK) == 0)
    }

    @Test func `A command that does not end is ended`() async throws {
        let machine = try LabProcess.machine("--adapters", "0", timeLimit: 1, running: ["sleep", "1000"])
        #expect(await machine.end(within: .seconds(60)) == .exited(124), "\(machine.output)")
        try await machine.expectNothing()
    }

    @Test func `A machine that cannot start reports the reason`() async throws {
        let machine = try LabProcess.machine("--air", "/nonexistent/air", running: ["true"])
        #expect(await machine.end(within: .seconds(60)) == .exited(125))
        #expect(machine.output.contains("No such file or directory"), "\(machine.output)")
        try await machine.expectNothing()
    }

    @Test(arguments: [
        [], ["--"], ["true"], ["--nonsense", "1", "--", "true"], ["--memory", "much", "--", "true"],
    ])
    func `Invalid arguments are refused`(arguments: [String]) async throws {
        let machine = try LabProcess(command: [Self.program] + arguments)
        #expect(await machine.end(within: .seconds(20)) == .exited(2))
        #expect(machine.output.contains("machine --help"))
    }

    @Test(arguments: EndingTests.Way.allCases)
    func `Nothing remains when it is ended at work`(by way: EndingTests.Way) async throws {
        let machine = try LabProcess.machine(
            "--adapters", "0", running: ["sh", "-c", "echo working; sleep 1000"])
        try await until("the command works") { machine.output.contains("working") }
        way.apply(to: machine.process)
        let ending = await machine.end(within: .seconds(10))
        #expect(ending == (way == .killed ? .killed(SIGKILL) : .exited(way == .terminated ? 143 : 130)))
        try await machine.expectNothing()
    }

    @Test(arguments: [1, 5, 10, 15, 20, 30, 40, 60, 80, 150, 300, 600] as [Int])
    func `Nothing remains when it is killed early`(afterMilliseconds milliseconds: Int) async throws {
        try await LabProcess.machine(running: ["sleep", "1000"]).killEarly(after: milliseconds)
    }

    /// Tests what a test can do to its surroundings, and what it sees of that.
    @Test func `Two adapters reach each other until they are removed`() async throws {
        try await EmulatedTrial.run { trial in
            let script = """
                adapters() { echo adapters: $(ls /sys/class/bluetooth); }
                until_changed() {
                    local before=$1
                    while [[ $(adapters) == "$before" ]]; do sleep 0.01; done
                    adapters
                }
                \(Self.probe) serve hci1 > >(tee /tmp/server) 2>&1 &
                until grep serving /tmp/server; do sleep 0.01; done
                \(Self.probe) call hci0 "$(adapter hci1 address)" > >(tee /tmp/client) 2>&1 &
                caller=$!
                until grep '^3 came back' /tmp/client; do sleep 0.01; done
                daemon bluetoothd restart
                until adapter hci0 is-powered; do sleep 0.01; done
                daemon btvirt kill
                wait $caller || true
                adapters
                daemon btvirt start
                until_changed 'adapters:'
                """
            let machine = try LabProcess.machine("--discoverable", running: ["bash", "-euc", script])
            trial.show("the machine", machine.output)
            let ending = await machine.end(within: .seconds(120))
            trial.check(ending == .exited(0), "the machine \(ending)")
            let lines = machine.output.split(separator: "\n")
            trial.check(lines.contains("3 came back"), "nothing came back")
            trial.check(lines.contains { $0.hasPrefix("ended by") }, "the link did not end")
            trial.check(lines.contains("adapters:"), "the adapters were not removed")
            trial.check(lines.last?.hasPrefix("adapters: hci") == true, "no adapters came back")
            Self.checkEchoes(machine, trial)
        }
    }

    @Test func `Two machines connect over an air that can be held and cut`() async throws {
        try await EmulatedTrial.run { trial in
            let air = try await BluetoothAir()
            let machine = { (command: [String]) in
                try LabProcess.machine("--discoverable", "--air", air.socket, running: command)
            }
            let server = try machine([Self.probe, "serve", "hci0"])
            trial.show("the server", server.output)
            // The line comes in parts.
            let serving = #/serving ([0-9A-F:]{17})\s/#
            try await trial.wait(until: "somebody serves") { server.output.contains(serving) }
            let address = server.output.firstMatch(of: serving).map { String($0.1) } ?? ""
            let client = try machine([Self.probe, "call", "hci0", address])
            trial.show("the client", client.output)
            defer { for machine in [client, server] { kill(machine.process, SIGTERM) } }
            try await trial.wait(until: "numbers come back") { client.output.contains("\n3 came back") }
            let users = try await air.send("users")
            trial.check(users.contains("0 \(address) 1; 1 "), "the users of the air are \(users)")
            trial.check(try await air.send("hold") == "ok\n", "it cannot be held")
            try await trial.wait(until: "nothing comes back") { client.output.contains("silent after ") }
            trial.check(try await air.send("release") == "ok\n", "it cannot be released")
            let returned = { client.output.split(separator: "\n").count { $0.hasSuffix(" came back") } }
            let before = returned()
            try await trial.wait(until: "numbers come back again") { returned() > before + 3 }
            trial.check(try await air.send("cut") == "ok\n", "it cannot be cut")
            for (name, machine) in [("client", client), ("server", server)] {
                let ending = await machine.end(within: .seconds(30))
                trial.check(ending == .exited(0), "the machine of the \(name) \(ending)")
                let hasTimedOut = machine.output.contains("ended by ETIMEDOUT")
                trial.check(hasTimedOut, "the link of the \(name) did not time out")
                Self.checkEchoes(machine, trial)
            }
        }
    }

    /// Checks that a probe got back nothing but what it had sent. It ends with these words if it did.
    private static func checkEchoes(_ machine: LabProcess, _ trial: EmulatedTrial) {
        trial.checkPromise(!machine.output.contains(" came back for "), "what came back was changed")
    }
}

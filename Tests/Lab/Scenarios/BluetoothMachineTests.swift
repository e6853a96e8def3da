import class ChildPrograms.Permits
import Glibc
import Testing

@testable import lab

/// Tests that the machine with Bluetooth (`Tests/Lab/bluetooth/machine`) does what tests of Bluetooth rely on. Each
/// test boots some machines, so the tests run one after the other.
@Suite(.serialized) struct BluetoothMachineTests {
    static let folder = BluetoothAir.folder

    /// The program that makes a machine.
    static let machine = "\(folder)/machine"

    private static func machine(_ options: [String] = [], _ command: [String]) throws -> LabProcess {
        try LabProcess(command: ["\(folder)/machine", "--time-limit", "60"] + options + ["--"] + command)
    }

    @Test func aCommandsOutputErrorsAndStatusArePassedOn() async throws {
        let command = "read -r line || echo no input; echo out; echo wrong >&2; echo $MOOD; exit 7"
        let machine = try LabProcess(command: [
            "bash", "-c",
            #"{ "$@" 2>&3 | sed 's/^/output: /'; exit "${PIPESTATUS[0]}"; } 3> >(sed 's/^/error: /')"#,
            "bash", "\(Self.folder)/machine", "--adapters", "0", "--environment", "MOOD=a good one",
            "--", "sh", "-c", command,
        ])
        #expect(await machine.end(within: .seconds(60)) == .exited(7), "\(machine.output)")
        try await until("all is printed") { machine.output.contains("error: wrong\n") }
        #expect(machine.output.contains("output: no input\noutput: out\noutput: a good one\n"))
        try await expectNothing(of: machine)
    }

    /// Terminals change bytes unless they are told not to.
    @Test func outputArrivesUnchanged() async throws {
        let bytes = #"head -c 3000000 /dev/zero | tr '\0' '\n'; printf '\003\004\021\023\t\r\n\377'"#
        let check =
            #"md5sum <(sh -c "$1") <("$0" --adapters 0 -- sh -c "$1") | cut -d ' ' -f 1 | uniq | wc -l"#
        let machine = try LabProcess(command: ["bash", "-c", check, "\(Self.folder)/machine", bytes])
        #expect(await machine.end(within: .seconds(60)) == .exited(0))
        #expect(machine.output == "1\n")
    }

    @Test func onlyWritesToTheWritableFolderAreKept() async throws {
        let place = "/tmp/nigh-machine-test-\(UInt64.random(in: .min ... .max))"
        try #require(mkdir("\(place)-kept", 0o700) == 0)
        defer {
            unlink("\(place)-kept/file")
            rmdir("\(place)-kept")
        }
        let machine = try Self.machine(
            ["--adapters", "0", "--writable", "\(place)-kept"],
            ["sh", "-c", "touch \(place) && ls \(place) && touch \(place)-kept/file"])
        #expect(await machine.end(within: .seconds(60)) == .exited(0), "\(machine.output)")
        #expect(machine.output == "\(place)\n")
        #expect(access(place, F_OK) != 0)
        #expect(access("\(place)-kept/file", F_OK) == 0)
    }

    @Test func aCommandThatDoesNotEndIsEnded() async throws {
        let machine = try Self.machine(["--adapters", "0", "--time-limit", "1"], ["sleep", "1000"])
        #expect(await machine.end(within: .seconds(60)) == .exited(124), "\(machine.output)")
        try await expectNothing(of: machine)
    }

    @Test func aMachineThatCannotStartReportsTheReason() async throws {
        let machine = try Self.machine(["--air", "/nonexistent/air"], ["true"])
        #expect(await machine.end(within: .seconds(60)) == .exited(125))
        #expect(machine.output.contains("No such file or directory"), "\(machine.output)")
        try await expectNothing(of: machine)
    }

    @Test(arguments: [
        [], ["--"], ["true"], ["--nonsense", "1", "--", "true"], ["--memory", "much", "--", "true"],
    ])
    func invalidArgumentsAreRefused(arguments: [String]) async throws {
        let machine = try LabProcess(command: ["\(Self.folder)/machine"] + arguments)
        #expect(await machine.end(within: .seconds(20)) == .exited(2))
        #expect(machine.output.contains("machine --help"))
    }

    @Test(arguments: EndingTests.Way.allCases)
    func nothingRemainsWhenItIsEndedAtWork(by way: EndingTests.Way) async throws {
        let machine = try Self.machine(["--adapters", "0"], ["sh", "-c", "echo working; sleep 1000"])
        try await until("the command works") { machine.output.contains("working") }
        way.apply(to: machine.process)
        let ending = await machine.end(within: .seconds(10))
        #expect(ending == (way == .killed ? .killed(SIGKILL) : .exited(way == .terminated ? 143 : 130)))
        try await expectNothing(of: machine)
    }

    /// There is no moment between its start and its work in which its death would go unnoticed.
    @Test(arguments: [1, 5, 10, 15, 20, 30, 40, 60, 80, 150, 300, 600] as [Int])
    func nothingRemainsWhenItIsKilledEarly(afterMilliseconds milliseconds: Int) async throws {
        let machine = try Self.machine([], ["sleep", "1000"])
        // Time is the subject: the kill must hit each part of the start.
        try await Task.sleep(for: .milliseconds(milliseconds))
        kill(machine.process, SIGKILL)
        #expect(await machine.end(within: .seconds(10)) == .killed(SIGKILL))
        try await expectNothing(of: machine)
    }

    /// Tests what a test can do to its surroundings, and what it sees of that.
    @Test func twoAdaptersReachEachOtherUntilTheyAreRemoved() async throws {
        let probe = "\(Self.folder)/probes/rfcomm"
        let machine = try Self.machine(
            ["--discoverable"],
            [
                "bash", "-euc",
                """
                adapters() { echo adapters: $(ls /sys/class/bluetooth); }
                until_changed() { local before=$1; while [[ $(adapters) == "$before" ]]; do sleep 0.01; done; adapters; }
                \(probe) serve hci1 > >(tee /tmp/server) 2>&1 &
                until grep serving /tmp/server; do sleep 0.01; done
                \(probe) call hci0 "$(adapter hci1 address)" > >(tee /tmp/client) 2>&1 &
                caller=$!
                until grep '^3 came back' /tmp/client; do sleep 0.01; done
                daemon bluetoothd restart
                until adapter hci0 is-powered; do sleep 0.01; done
                daemon btvirt kill
                wait $caller || true
                adapters
                daemon btvirt start
                until_changed 'adapters:'
                """,
            ])
        #expect(await machine.end(within: .seconds(60)) == .exited(0), "\(machine.output)")
        let lines = machine.output.split(separator: "\n")
        #expect(lines.contains("3 came back"), "\(machine.output)")
        #expect(lines.contains { $0.hasPrefix("ended by") }, "\(machine.output)")
        #expect(lines.contains("adapters:"), "\(machine.output)")
        #expect(lines.last?.hasPrefix("adapters: hci") == true, "\(machine.output)")
    }

    @Test func twoMachinesConnectOverAnAirThatCanBeHeldAndCut() async throws {
        try await Permits.machines.run {
            let air = try await BluetoothAir()
            // Longer than all that it waits for.
            let options = ["--time-limit", "240", "--discoverable", "--air", air.socket]
            let server = try Self.machine(options, ["\(Self.folder)/probes/rfcomm", "serve", "hci0"])
            // The line comes in parts.
            let serving = #/serving ([0-9A-F:]{17})\s/#
            try await until("somebody serves: \(server.output)") { server.output.contains(serving) }
            let address = try #require(server.output.firstMatch(of: serving)).1
            let client = try Self.machine(
                options, ["\(Self.folder)/probes/rfcomm", "call", "hci0", String(address)])
            try await until("numbers come back: \(client.output)\(server.output)") {
                client.output.contains("\n3 came back")
            }
            #expect(try await air.send("users").contains("0 \(address) 1; 1 "))

            #expect(try await air.send("hold") == "ok\n")
            try await until("nothing comes back") { client.output.contains("silent after ") }
            #expect(try await air.send("release") == "ok\n")
            let returned = { client.output.split(separator: "\n").count { $0.hasSuffix(" came back") } }
            let before = returned()
            try await until("numbers come back again: \(client.output)") { returned() > before + 3 }

            #expect(try await air.send("cut") == "ok\n")
            #expect(await client.end(within: .seconds(10)) == .exited(0))
            #expect(await server.end(within: .seconds(10)) == .exited(0))
            #expect(client.output.contains("ended by ETIMEDOUT"), "\(client.output)")
            #expect(server.output.contains("ended by ETIMEDOUT"), "\(server.output)")
        }
    }

    /// Waits until no process of the machine is left.
    private func expectNothing(of machine: LabProcess) async throws {
        try await until("its processes are gone") { Machine.processes(with: machine.token).isEmpty }
    }
}

import Glibc
import Testing

@testable import lab

/// Tests that the machine with Bluetooth (`Tests/Lab/bluetooth/machine`) does what tests of Bluetooth rely on. Each
/// test boots some machines, so the tests run one after the other.
@Suite(.serialized) struct BluetoothMachineTests {
    static let folder = BluetoothAir.folder

    /// The program that makes a machine.
    static let machine = "\(folder)/machine"

    /// The program that talks over RFCOMM without bluetoothd.
    private static let probe = "\(folder)/probes/rfcomm"

    /// Starts a machine that gives its command far more time than it needs when the processors are busy.
    private static func machine(_ options: [String] = [], _ command: [String]) throws -> LabProcess {
        try LabProcess(command: ["\(folder)/machine", "--time-limit", "480"] + options + ["--"] + command)
    }

    @Test func aCommandsOutputErrorsAndStatusArePassedOn() async throws {
        let command = "read -r line || echo no input; echo out; echo wrong >&2; echo $MOOD; exit 7"
        let machine = try LabProcess(command: [
            "bash", "-c",
            #"{ "$@" 2>&3 | sed 's/^/output: /'; exit "${PIPESTATUS[0]}"; } 3> >(sed 's/^/error: /')"#,
            "bash", "\(Self.folder)/machine", "--time-limit", "480", "--adapters", "0", "--environment",
            "MOOD=a good one",
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
            #"md5sum <(sh -c "$1") <("$0" --time-limit 480 --adapters 0 -- sh -c "$1") | cut -d ' ' -f 1 | uniq | wc -l"#
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
        try await EmulatedTrial.run {
            let machine = try Self.machine(
                ["--discoverable"],
                [
                    "bash", "-euc",
                    """
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
                    """,
                ])
            let ending = await machine.end(within: .seconds(120))
            var trial = EmulatedTrial(output: machine.output)
            trial.check(ending == .exited(0), "the machine \(ending)")
            let lines = trial.output.split(separator: "\n")
            trial.check(lines.contains("3 came back"), "nothing came back")
            trial.check(lines.contains { $0.hasPrefix("ended by") }, "the link did not end")
            trial.check(lines.contains("adapters:"), "the adapters were not removed")
            trial.check(lines.last?.hasPrefix("adapters: hci") == true, "no adapters came back")
            Self.checkEchoes(&trial)
            return trial
        }
    }

    @Test func twoMachinesConnectOverAnAirThatCanBeHeldAndCut() async throws {
        try await EmulatedTrial.run {
            var trial = EmulatedTrial()
            let air = try await BluetoothAir()
            let options = ["--discoverable", "--air", air.socket]
            let server = try Self.machine(options, [Self.probe, "serve", "hci0"])
            // The line comes in parts.
            let serving = #/serving ([0-9A-F:]{17})\s/#
            try await trial.wait(until: "somebody serves") { server.output.contains(serving) }
            if let match = server.output.firstMatch(of: serving) {
                let address = String(match.1)
                let client = try Self.machine(options, [Self.probe, "call", "hci0", address])
                try await Self.holdAndCut(air, between: client, and: address, &trial)
                await Self.checkEnd(of: client, "the client", &trial)
            }
            await Self.checkEnd(of: server, "the server", &trial)
            Self.checkEchoes(&trial)
            return trial
        }
    }

    /// Lets `client` exchange numbers with the server at `address`, and holds, releases and cuts the air meanwhile.
    private static func holdAndCut(
        _ air: BluetoothAir, between client: LabProcess, and address: String, _ trial: inout EmulatedTrial
    ) async throws {
        let areConnected = try await trial.wait(until: "numbers come back") {
            client.output.contains("\n3 came back")
        }
        guard areConnected else { return }
        let users = try await air.send("users")
        trial.check(users.contains("0 \(address) 1; 1 "), "the users of the air are \(users)")

        var answer = try await air.send("hold")
        trial.check(answer == "ok\n", "hold: \(answer)")
        let isHeld = try await trial.wait(until: "nothing comes back") {
            client.output.contains("silent after ")
        }
        guard isHeld else { return }
        answer = try await air.send("release")
        trial.check(answer == "ok\n", "release: \(answer)")
        let returned = { client.output.split(separator: "\n").count { $0.hasSuffix(" came back") } }
        let before = returned()
        let isReleased = try await trial.wait(until: "numbers come back again") { returned() > before + 3 }
        guard isReleased else { return }

        answer = try await air.send("cut")
        trial.check(answer == "ok\n", "cut: \(answer)")
    }

    /// Checks that the probe in `machine` ended because its link timed out. Ends the machine in any case.
    private static func checkEnd(
        of machine: LabProcess, _ name: String, _ trial: inout EmulatedTrial
    ) async {
        // After a failure the air is not cut, so the probe would go on.
        let ending = await machine.end(within: trial.faults.isEmpty ? .seconds(30) : .zero)
        trial.check(ending == .exited(0), "the machine of \(name) \(ending)")
        trial.check(machine.output.contains("ended by ETIMEDOUT"), "the link of \(name) did not time out")
        trial.addOutput(machine.output, of: name)
    }

    /// Checks that a probe got back nothing but what it had sent. It ends with these words if it did.
    private static func checkEchoes(_ trial: inout EmulatedTrial) {
        trial.checkPromise(!trial.output.contains(" came back for "), "what came back was changed")
    }

    /// Waits until no process of the machine is left.
    private func expectNothing(of machine: LabProcess) async throws {
        try await until("its processes are gone") { Machine.processes(with: machine.token).isEmpty }
    }
}

import ChildPrograms
import Foundation
import Testing

@testable import lab

/// Programs that scenarios do not know, on two adapters of one machine.
@Suite struct BluetoothProgramTests {
    @Test func `The hello program carries lines over Bluetooth`() async throws {
        let program = try BuiltPackages.build("Examples/Hello") + "/Hello"
        try await EmulatedTrial.run { trial in
            let machine = try LabProcess.machine(
                timeLimit: 960,
                running: [
                    "bash", "-euc",
                    #"""
                    cd /tmp
                    begin() {
                        mkfifo "$1.input"
                        XDG_DATA_HOME=/tmp/$1.data stdbuf -oL "$0" "$1" "bluetooth:adapter=$2,interval=1" \
                            <"$1.input" >"$1" 2>&1 &
                    }
                    show() { for name in Puma Lynx; do sed "s/^/$name /" $name; done; }
                    trap show EXIT
                    until_said() {
                        until grep --quiet "$2" "$1"; do
                            sleep 0.1
                            if ((SECONDS > 930)); then exit 1; fi
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
                    """#, program,
                ])
            trial.show("the machine", machine.output)
            let ending = await machine.end(within: .seconds(1_020))
            trial.check(ending == .exited(0), "the machine \(ending)")
            // The output of both: each line of the other one, once.
            let lines = machine.output.split(separator: "\n")
            for (sender, words) in [("Lynx Puma: ", "good morning"), ("Puma Lynx: ", "good night")] {
                let said = lines.filter { $0.hasPrefix(sender) }.map { String($0.dropFirst(sender.count)) }
                trial.check(!said.isEmpty, "\"\(words)\" did not come")
                trial.checkPromise(said.isEmpty || said == [words], "instead of \"\(words)\" came \(said)")
            }
        }
    }

    @Test func `A peer found by inquiry is pinged, and throughput measured at its address`() async throws {
        let nigh = try Spawning.path(of: "nigh")
        try await EmulatedTrial.run { trial in
            let machine = try LabProcess.machine(running: [
                "bash", "-euc",
                #"""
                cd /tmp
                mine() { "$0" "$1" --identity ephemeral -t "bluetooth:adapter=$2" "${@:3}"; }
                show() { sed 's/^/host /' host; sed 's/^/error /' errors; }
                "$0" host --identity ephemeral -t bluetooth:adapter=hci0 --name Puma --json-lines >host 2>errors &
                host=$!
                trap show EXIT
                until grep --quiet '"listening"' host; do
                    sleep 0.05
                    if ((SECONDS > 120)); then exit 1; fi
                done
                address=$(sed -n 's/.*"addresses":\["\([^"]*\)".*/\1/p' host)
                echo "ping $(mine ping hci1 Puma --wait 120s -c 20 -i 20ms --json)"
                echo "bench $(mine bench hci1 "$address" --wait 120s --size 4k --seconds 2 --json)"
                kill -TERM $host
                wait $host
                """#, nigh,
            ])
            trial.show("the machine", machine.output)
            let ending = await machine.end(within: .seconds(540))
            trial.check(ending == .exited(0), "the machine \(ending)")
            Self.checkMeasurements(machine.output, trial)
        }
    }

    /// The reports of `nigh bench` and `nigh host` if a message of a run is lost, doubled or changed.
    private static let reportsOfWrongData = [
        "messages were reported sent", "an unexpected message in a run", "a message of another run",
        "a second mark", "an end without a mark", "an outcome that does not match the run",
    ]

    private static func checkMeasurements(_ output: String, _ trial: EmulatedTrial) {
        for report in reportsOfWrongData {
            trial.checkPromise(!output.contains(report), "there was \"\(report)\"")
        }
        /// The JSON objects in the lines that begin with `name`.
        func objects(_ name: String) -> [[String: Any]] {
            output.split(separator: "\n").filter { $0.hasPrefix("\(name) ") }.compactMap { line in
                let text = Data(line.dropFirst(name.count + 1).utf8)
                return try? JSONSerialization.jsonObject(with: text) as? [String: Any]
            }
        }
        guard let ping = objects("ping").first, let bench = objects("bench").first,
            let name = (ping["peer"] as? [String: Any])?["name"] as? String,
            let paths = ping["paths"] as? [[String: Any]], let runs = bench["runs"] as? [[String: Any]]
        else { return trial.check(false, "nobody was pinged and measured") }
        trial.checkPromise(name == "Puma", "\(name) was pinged")
        trial.check(
            ping["sent"] as? Int == 20 && (ping["received"] as? Int ?? 0) > 0, "no ping was answered")
        for (words, found, expected) in [
            ("pings", paths.map { $0["transport"] as? String }, ["bluetooth"]),
            ("runs", runs.map { $0["transport"] as? String }, ["bluetooth", "bluetooth", "bluetooth"]),
            ("directions", runs.map { $0["direction"] as? String }, ["up", "down", "both"]),
        ] { trial.check(found == expected, "the \(words) were \(found)") }
        for run in runs {
            for way in ["up", "down"].compactMap({ run[$0] as? [String: [String: Any]] }) {
                let counts = ["sent", "received"].map { way[$0]?["messages"] as? Int }
                trial.checkPromise(counts[0] == counts[1], "\(counts) messages were sent and came")
                let rate = way["received"]?["bytes_per_second"] as? Double ?? 0
                trial.check(rate > 1_000, "a run was slow")
            }
        }
        let summary = objects("host").last
        trial.check(
            summary?["pinged_by"] as? Int == 1 && summary?["runs_measured"] as? Int == 3,
            "the host counted other guests or runs")
    }
}

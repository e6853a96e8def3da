import Foundation
import Testing

@testable import lab

/// Runs `nigh host` on one adapter of a machine, `nigh ping` and `nigh bench` on the other.
@Suite struct BluetoothMeasuringTests {
    /// What `nigh bench` and `nigh host` report if a message of a run is lost, doubled or changed.
    private static let reportsOfWrongData = [
        "messages were reported sent", "an unexpected message in a run", "a message of another run",
        "a second mark", "an end without a mark", "an outcome that does not match the run",
    ]

    @Test("A peer found by inquiry is pinged, and throughput measured at its address")
    func pingAndBench() async throws {
        try await EmulatedTrial.run { Self.trial(of: try await Self.measure()) }
    }

    /// Returns what the programs printed, and how the machine ended on which they ran.
    private static func measure() async throws -> String {
        let machine = try LabProcess(command: [
            BluetoothMachineTests.machine, "--time-limit", "480", "--", "bash", "-euc",
            #"""
            cd /tmp
            mine() { "$0" "$1" --identity ephemeral -t "bluetooth:adapter=$2" "${@:3}"; }
            show() {
                sed 's/^/host /' host
                sed 's/^/error /' errors
            }
            "$0" host --identity ephemeral -t bluetooth:adapter=hci0 --name Puma --json-lines >host 2>errors &
            host=$!
            trap show EXIT
            until grep --quiet '"listening"' host; do
                sleep 0.05
                if ((SECONDS > 120)); then
                    echo "nobody listens"
                    exit 1
                fi
            done
            address=$(sed -n 's/.*"addresses":\["\([^"]*\)".*/\1/p' host)
            echo "ping $(mine ping hci1 Puma --wait 120s -c 20 -i 20ms --json)"
            echo "bench $(mine bench hci1 "$address" --wait 120s --size 4k --seconds 2 --json)"
            kill -TERM $host
            wait $host
            """#, try Spawning.path(of: "nigh"),
        ])
        let ending = await machine.end(within: .seconds(540))
        return "\(machine.output)\nthe machine \(ending)"
    }

    /// Judges what the programs printed.
    private static func trial(of output: String) -> EmulatedTrial {
        var trial = EmulatedTrial(output: output)
        trial.check(
            output.hasSuffix("\nthe machine \(Child.Ending.exited(0))"), "the machine did not end well")
        for report in reportsOfWrongData {
            trial.checkPromise(!output.contains(report), "there was \"\(report)\"")
        }
        checkPing(objects("ping", &trial).first, &trial)
        checkBench(objects("bench", &trial).first, &trial)
        let summary = objects("host", &trial).last
        trial.check(
            summary?["pinged_by"] as? Int == 1 && summary?["runs_measured"] as? Int == 3,
            "the host counted other guests or runs")
        return trial
    }

    /// Returns the JSON objects in the lines that begin with `name`.
    private static func objects(_ name: String, _ trial: inout EmulatedTrial) -> [[String: Any]] {
        var objects: [[String: Any]] = []
        for line in trial.output.split(separator: "\n") where line.hasPrefix("\(name) ") {
            let text = Data(line.dropFirst(name.count + 1).utf8)
            if let object = try? JSONSerialization.jsonObject(with: text) as? [String: Any] {
                objects.append(object)
            } else {
                trial.check(false, "this is no JSON object: \(line)")
            }
        }
        return objects
    }

    private static func checkPing(_ ping: [String: Any]?, _ trial: inout EmulatedTrial) {
        guard let ping, let name = (ping["peer"] as? [String: Any])?["name"] as? String else {
            return trial.check(false, "nobody was pinged")
        }
        trial.checkPromise(name == "Puma", "\(name) was pinged")
        trial.check(
            ping["sent"] as? Int == 20 && (ping["received"] as? Int ?? 0) > 0, "no ping was answered")
        let paths = ping["paths"] as? [[String: Any]] ?? []
        let transports = paths.map { $0["transport"] as? String ?? "" }
        trial.check(transports == ["bluetooth"], "the pings went over \(transports)")
    }

    private static func checkBench(_ bench: [String: Any]?, _ trial: inout EmulatedTrial) {
        let runs = bench?["runs"] as? [[String: Any]] ?? []
        let directions = runs.map { $0["direction"] as? String ?? "" }
        trial.check(directions == ["up", "down", "both"], "the measured runs are \(directions)")
        for run in runs {
            let transport = run["transport"] as? String ?? ""
            trial.check(transport == "bluetooth", "a run went over \"\(transport)\"")
            for direction in ["up", "down"] {
                guard let way = run[direction] as? [String: [String: Any]] else { continue }
                let sent = way["sent"]?["messages"] as? Int
                let received = way["received"]?["messages"] as? Int
                trial.checkPromise(
                    sent == received, "\(sent ?? 0) messages were sent \(direction), \(received ?? 0) came")
                trial.check(
                    (way["received"]?["bytes_per_second"] as? Double ?? 0) > 1_000,
                    "a run was slow \(direction)")
            }
        }
    }
}

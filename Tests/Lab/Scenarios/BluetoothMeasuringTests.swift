import class ChildPrograms.Permits
import Foundation
import Testing

@testable import lab

/// Runs `nigh host` on one adapter of a machine, `nigh ping` and `nigh bench` on the other.
@Suite struct BluetoothMeasuringTests {
    @Test("A peer found by inquiry is pinged, and throughput measured at its address")
    func pingAndBench() async throws {
        let output = try await Permits.machines.run {
            let machine = try LabProcess(command: [
                BluetoothMachineTests.machine, "--time-limit", "150", "--", "bash", "-euc",
                #"""
                cd /tmp
                mine() { "$0" "$1" --identity ephemeral -t "bluetooth:adapter=$2" "${@:3}"; }
                "$0" host --identity ephemeral -t bluetooth:adapter=hci0 --name Puma --json-lines >host 2>errors &
                host=$!
                until grep --quiet '"listening"' host; do sleep 0.05; done
                address=$(sed -n 's/.*"addresses":\["\([^"]*\)".*/\1/p' host)
                echo "ping $(mine ping hci1 Puma --wait 60s -c 20 -i 20ms --json)"
                echo "bench $(mine bench hci1 "$address" --wait 60s --size 4k --seconds 2 --json)"
                kill -TERM $host
                wait $host
                sed 's/^/host /' host
                sed 's/^/error /' errors
                """#, try Spawning.path(of: "nigh"),
            ])
            #expect(await machine.end(within: .seconds(190)) == .exited(0), "\(machine.output)")
            return machine.output
        }
        let lines = output.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
        let objects = { (name: String) throws -> [[String: Any]] in
            try lines.filter { $0.count == 2 && $0[0] == name }.map { line in
                try #require(
                    try JSONSerialization.jsonObject(with: Data(line[1].utf8)) as? [String: Any], "\(line)")
            }
        }
        let ping = try #require(try objects("ping").first, "\(output)")
        #expect((ping["peer"] as? [String: Any])?["name"] as? String == "Puma")
        #expect(ping["sent"] as? Int == 20 && (ping["received"] as? Int ?? 0) > 0)
        let paths = try #require(ping["paths"] as? [[String: Any]])
        #expect(paths.map { $0["transport"] as? String } == ["bluetooth"])

        let bench = try #require(try objects("bench").first, "\(output)")
        let runs = try #require(bench["runs"] as? [[String: Any]])
        #expect(runs.map { $0["direction"] as? String } == ["up", "down", "both"])
        for run in runs {
            #expect(run["transport"] as? String == "bluetooth")
            for direction in ["up", "down"] {
                guard let way = run[direction] as? [String: [String: Any]] else { continue }
                #expect(way["sent"]?["messages"] as? Int == way["received"]?["messages"] as? Int)
                #expect((way["received"]?["bytes_per_second"] as? Double ?? 0) > 1_000)
            }
        }
        let summary = try #require(try objects("host").last)
        #expect(summary["pinged_by"] as? Int == 1 && summary["runs_measured"] as? Int == 3, "\(output)")
    }
}

import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

/// Tests that this version goes on with what earlier ones have left on the disk. Each version has a folder here, with
/// the data of Lynx, who was sending the file `film` when its program was killed, and of Puma, who was receiving it.
@Suite(.callsPrograms) struct UpgradeTests: TransfersFiles {
    static let versions = ["0.2.0"]

    let sender = NighUser()
    let receiver = NighUser()
    let files = TemporaryFolder()
    let inbox = TemporaryFolder()

    /// Copies a file or folder of an earlier version. Files of a user's data are readable by their owner only, which
    /// git does not keep.
    private func restore(_ name: String, of version: String, to destination: String) throws {
        let source = URL(fileURLWithPath: "\(#filePath)").deletingLastPathComponent()
        try? FileManager.default.removeItem(atPath: destination)
        try FileManager.default.copyItem(
            atPath: source.appendingPathComponent("\(version)/\(name)").path, toPath: destination)
        let items = FileManager.default.enumerator(atPath: destination)?.compactMap { $0 as? String } ?? []
        for path in [destination] + items.map({ "\(destination)/\($0)" }) {
            var about = stat()
            try #require(stat(path, &about) == 0 && chmod(path, about.st_mode & 0o700) == 0)
        }
    }

    private func restoreUsers(of version: String) throws {
        try restore("lynx", of: version, to: sender.dataFolder)
        try restore("puma", of: version, to: receiver.dataFolder)
    }

    @Test("A user has the same identity, name and pairings as in an earlier version", arguments: versions)
    func identity(_ version: String) throws {
        try restoreUsers(of: version)
        for (user, name, peer) in [(sender, "Lynx", "Puma"), (receiver, "Puma", "Lynx")] {
            let pem = try content("\(user.dataFolder)/identity.pem")
            let own = try user.run("identity", "--json").object()
            #expect(own["name"] as? String == name)
            // The file names the identity in the clear, as the earlier version wrote it.
            let id = try #require(own["id"] as? String)
            #expect(String(decoding: pem, as: UTF8.self).contains(id))
            #expect(try content("\(user.dataFolder)/identity.pem") == pem)
            let peers = try #require(
                try user.run("peers", "--paired", "--json").object()["peers"] as? [[String: Any]])
            #expect(peers.count == 1 && peers[0]["name"] as? String == peer, "\(peers)")
        }
    }

    @Test(
        "A transfer that an earlier version left unfinished is listed, and continues where it was",
        arguments: versions)
    func transfer(_ version: String) throws {
        try restoreUsers(of: version)
        try restore("inbox/film.part", of: version, to: received("film.part"))
        let film = try file("film", bytes: 1_300_000)
        // What had come is the beginning of the film. The repository has an empty file in its place.
        try film.prefix(851_441).write(to: URL(fileURLWithPath: data(of: "film")))

        let waiting = try receive("--once", accepting: "paired")
        let records = "\(sender.dataFolder)/transfers"
        let id = try #require(try FileManager.default.contentsOfDirectory(atPath: records).first)
        let record = String(decoding: try content("\(records)/\(id)"), as: UTF8.self)
        let before = try #require(SendRecord.Content(record)).arguments
        #expect(SendRecord.id(of: before.joined(separator: "\n")) == id)
        // The receiver listens at another address now, and the file is in another folder.
        let moved = record.replacing("tcp://127.0.0.1:45871", with: waiting.address)
            .replacing("/home/lynx/film", with: path("film"))
        let arguments = try #require(SendRecord.Content(moved)).arguments
        let newID = SendRecord.id(of: arguments.joined(separator: "\n"))
        try FileManager.default.removeItem(atPath: "\(records)/\(id)")
        try Data(moved.utf8).write(to: URL(fileURLWithPath: "\(records)/\(newID)"))

        let list = try sender.run("transfers", "--json", "--into", files.path)
        let listed = try #require(try list.object()["transfers"] as? [[String: Any]])
        #expect(listed.count == 1 && listed[0]["names"] as? [String] == ["film"], "\(listed)")
        let sent = try sender.run("transfers", "resume", newID, "--json")
        #expect(sent.status == 0, "\(sent)")
        #expect(try sent.object()["resumed_bytes"] as? Int == 851_441, "\(sent)")
        #expect(try NighCall(finishing: waiting.child).status == 0)
        #expect(try content(received("film")) == film)
        #expect(try names() == ["film"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: records) == [])
    }
}

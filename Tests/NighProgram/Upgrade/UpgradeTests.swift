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
        let source = "\(BuiltPackages.root)/Tests/NighProgram/Upgrade/\(version)/\(name)"
        try? FileManager.default.removeItem(atPath: destination)
        try FileManager.default.copyItem(atPath: source, toPath: destination)
        try Child.run("/bin/chmod", ["-R", "go=", destination])
    }

    private func restoreUsers(of version: String) throws {
        try restore("lynx", of: version, to: sender.dataFolder)
        try restore("puma", of: version, to: receiver.dataFolder)
    }

    @Test(arguments: versions)
    func `Identity, name and pairings are those of an earlier version`(_ version: String) throws {
        try restoreUsers(of: version)
        for (user, name, peer) in [(sender, "Lynx", "Puma"), (receiver, "Puma", "Lynx")] {
            let pem = try content("\(user.dataFolder)/identity.pem")
            let own = try user.run("identity --json").json
            #expect(own["name"].string == name)
            // The file names the identity in the clear, as the earlier version wrote it.
            #expect(String(decoding: pem, as: UTF8.self).contains(try #require(own["id"].string)))
            #expect(try content("\(user.dataFolder)/identity.pem") == pem)
            let peers = try user.run("peers --paired --json").json["peers"].list
            #expect(peers.map { $0["name"].string } == [peer], "\(peers)")
        }
    }

    @Test(arguments: versions)
    func `A transfer of an earlier version continues where it was`(_ version: String) throws {
        try restoreUsers(of: version)
        try restore("inbox/film.part", of: version, to: received("film.part"))
        let film = try file("film", bytes: 1_300_000)
        // The received part is the beginning of the film. The repository has an empty file in its place.
        try film.prefix(851_441).write(to: URL(fileURLWithPath: data(of: "film")))

        let waiting = try receive("--once", accepting: "paired")
        let records = "\(sender.dataFolder)/transfers"
        let id = try #require(TemporaryFolder.names(in: records).first)
        let record = TemporaryFolder.text(of: "\(records)/\(id)")
        let before = try #require(SavedTransfer.Content(record)).arguments
        #expect(SavedTransfer.id(of: before.joined(separator: "\n")) == id)
        // The receiver listens at another address now, and the file is in another folder.
        let moved = record.replacing("tcp://127.0.0.1:45871", with: waiting.address)
            .replacing("/home/lynx/film", with: path("film"))
        let arguments = try #require(SavedTransfer.Content(moved)).arguments
        let newID = SavedTransfer.id(of: arguments.joined(separator: "\n"))
        unlink("\(records)/\(id)")
        try Data(moved.utf8).write(to: URL(fileURLWithPath: "\(records)/\(newID)"))

        let listed = try sender.run("transfers --json --into \(files.path)").json["transfers"]
        #expect(listed.list.count == 1 && listed[0]["names"].strings == ["film"], "\(listed)")
        let sent = try sender.run("transfers resume \(newID) --json").json
        #expect(sent["resumed_bytes"].int == 851_441, "\(sent)")
        try waiting.child.finish()
        #expect(try content(received("film")) == film)
        #expect(try names() == ["film"] && TemporaryFolder.names(in: records) == [])
    }
}

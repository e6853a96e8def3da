import Arguments
import ChildPrograms
import Foundation
import NighTestKit
import Testing

@testable import nigh

@Suite(.callsPrograms) struct SettingsFileTests {
    private func parse(_ text: String) throws -> [OptionDefault] {
        try SettingsFile.parse(text, path: "settings", home: "/home/puma")
    }

    @Test("Lines are options for all commands, or for the one above them")
    func lines() throws {
        let text = """
            # for all
            transport = tcp

            [receive]   # for one
              into = ~/Downloads
            notify=yes
            """
        #expect(
            try parse(text) == [
                OptionDefault(command: nil, option: "transport", value: "tcp", place: "settings, line 2"),
                OptionDefault(
                    command: "receive", option: "into", value: "/home/puma/Downloads",
                    place: "settings, line 5"),
                OptionDefault(command: "receive", option: "notify", value: "yes", place: "settings, line 6"),
            ])
    }

    @Test(
        "A line that is no setting is named with its number",
        arguments: ["transport", "= tcp", "into =", "[receive"])
    func faults(_ line: String) {
        let error = #expect(throws: UsageError.self) { try parse("\n\(line)") }
        #expect(error?.description.hasPrefix("settings, line 2: ") == true)
    }

    @Test("A command takes its defaults from the file, and refuses a file that others can write")
    func program() throws {
        let user = NighUser()
        let folder = "\(user.folder.path)/nigh"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = "\(folder)/settings"
        try "[status]\nduration = 0\njson = yes\n".write(toFile: path, atomically: true, encoding: .utf8)
        chmod(path, 0o600)
        #expect(try user.run("status").object()["nigh"] as? String == "status")
        try "tempo = 5\n".write(toFile: path, atomically: true, encoding: .utf8)
        chmod(path, 0o600)
        let wrong = try user.run("status")
        #expect(wrong.status == 2 && wrong.errors.count == 1, "\(wrong)")
        #expect(wrong.errors[0].contains("\(path), line 1: no command has an option \"tempo\""))
        chmod(path, 0o666)
        let refused = try user.run("status")
        #expect(refused.status == 2 && refused.errors.joined().contains("others may write it"), "\(refused)")
    }
}

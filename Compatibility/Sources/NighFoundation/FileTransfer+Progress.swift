import Foundation
import Nigh
import NighCompatibility

extension FileTransfer {
    /// Returns a Foundation `Progress` of this transfer, for user interfaces and code that expect one.
    ///
    /// It counts bytes, and is indeterminate while the size of a file is unknown. It follows the transfer to its end,
    /// up to ten times a second, whether or not the program keeps it. `cancel()`, `pause()` and `resume()` of the
    /// progress do the same to the transfer; the other program gets the reason. The keys `fileTotalCountKey` and
    /// `fileCompletedCountKey` have the numbers of files and folders, `throughputKey` the bytes a second and
    /// `estimatedTimeRemainingKey` the seconds that are left, if they are known.
    ///
    /// Each call returns another object.
    public func foundationProgress() -> Progress {
        let progress = SteeringProgress(totalUnitCount: -1)
        progress.kind = .file
        progress.isCancellable = true
        progress.isPausable = true
        progress.steer {
            switch $0 {
            case .cancel: self.cancel()
            case .pause: self.pause()
            case .resume: self.resume()
            }
        }
        progress.show(self.progress)
        Task(executorPreference: QueueExecutor(label: "nigh.foundation.progress")) {
            for await update in self.updates { progress.show(update) }
            // The closure that retains the transfer is no longer needed.
            progress.steer(nil)
        }
        return progress
    }
}

extension Progress {
    fileprivate func show(_ update: FileProgress) {
        totalUnitCount = update.total.map(Int64.init) ?? -1
        completedUnitCount = Int64(update.done)
        setUserInfoObject(update.itemCount, forKey: .fileTotalCountKey)
        setUserInfoObject(update.itemsDone, forKey: .fileCompletedCountKey)
        setUserInfoObject(update.bytesPerSecond.map { Int($0) }, forKey: .throughputKey)
        setUserInfoObject(update.timeLeft.map { $0 / .seconds(1) }, forKey: .estimatedTimeRemainingKey)
    }
}

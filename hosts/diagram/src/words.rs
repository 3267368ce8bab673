//! The words of a picture, in the languages of the pages that show one. Names, errors and code are never translated.

/// The language of the words in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Words {
    /// The language of the API.
    #[default]
    English,
    /// Simplified Chinese (简体中文).
    Chinese,
}

/// What a picture says: in English, as the code has it, and in Chinese. Each `{}` is filled in.
const CHINESE: &[(&str, &str)] = &[
    ("not reached", "未到达"),
    ("running", "运行中"),
    ("waiting", "等待中"),
    ("done", "完成"),
    ("failed", "失败"),
    ("caught", "已捕获"),
    ("cancelled", "已取消"),
    ("being undone", "回滚中"),
    ("undone", "已回滚"),
    ("could not be undone", "未能回滚"),
    ("waiting to retry", "等待重试"),
    ("waiting to poll", "等待轮询"),
    ("waiting for an operator", "待人处理"),
    ("goto", "跳转"),
    ("caught error", "捕获错误"),
    ("depends on", "依赖"),
    ("way taken", "所经路径"),
    ("begin", "开始"),
    ("end", "结束"),
    ("each of {}", "遍历 {}"),
    ("until {}", "至 {}"),
    ("{} seconds", "{} 秒"),
    ("until any branch succeeds", "至任一分支成功"),
    ("until {} of {} branches succeed", "至 {} 个分支成功（共 {} 个）"),
    ("retry {}×", "重试 {}×"),
    ("timeout {}", "超时 {}"),
    ("timeout computed", "超时由计算得出"),
    ("numbers computed", "数值由计算得出"),
    ("sync", "同步"),
    ("callback", "回调"),
    ("poll {}", "轮询 {}"),
    ("rollback", "可回滚"),
    ("rollback of child", "可回滚子执行"),
    ("heartbeat {}", "心跳 {}"),
    ("queued {}", "排队至多 {}"),
    ("priority {}", "优先级 {}"),
    ("{} at once", "同时 {} 个"),
    ("computed number at once", "同时个数由计算得出"),
    ("{} may fail", "允许 {} 个失败"),
    ("{} % may fail", "允许 {}% 失败"),
    ("any error", "任何错误"),
    ("all but {}", "除 {} 外"),
    ("otherwise", "否则"),
    ("branch {}", "分支 {}"),
    ("after {}", "在 {} 之后"),
    ("after {} and {} more", "在 {} 等之后（另 {} 个）"),
    ("goes on", "继续"),
    ("taken {}×", "经过 {}×"),
    ("operator", "人工处理"),
    ("on {}", "遇 {}"),
    ("{} attempts", "{} 次尝试"),
    ("undone before", "曾回滚"),
    ("undone {}× before", "曾回滚 {}×"),
    ("items", "项"),
    ("branches", "分支"),
    ("{} {} done", "{} {}完成"),
    ("{}: {} failed, {} done", "{}：{} 失败，{} 完成"),
    (" after {}", "，用时 {}"),
    (" in {}", "，发生于 {}"),
    ("Succeeded", "成功"),
    ("Failed", "失败"),
    ("Stopped", "已停止"),
    ("TimedOut", "超时"),
    ("RollbackFailed", "回滚失败"),
    ("task", "任务"),
    ("pass", "传递"),
    ("wait", "等待"),
    ("choice", "选择"),
    ("parallel", "并行"),
    ("foreach", "遍历"),
    ("succeed", "成功结束"),
    ("fail", "失败结束"),
    ("A flow of {} steps: {}.", "流程共 {} 个步骤：{}。"),
    (" and so on", " 等"),
    (" {}.", " {}。"),
    (" Steps: {}.", " 步骤：{}。"),
];

impl Words {
    /// A text in this language.
    pub(crate) fn say(self, english: &'static str) -> &'static str {
        if self == Self::English {
            return english;
        }
        let found = CHINESE.iter().find(|(known, _)| *known == english);
        debug_assert!(found.is_some(), "{english:?} has no Chinese text");
        found.map_or(english, |(_, chinese)| chinese)
    }

    /// A text in this language, with what is filled in.
    pub(crate) fn fill(self, english: &'static str, with: &[&str]) -> String {
        let mut parts = self.say(english).split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, with) in parts.zip(with) {
            text.push_str(with);
            text.push_str(part);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    #[test]
    fn each_text_is_there_once_with_as_much_to_fill_in() {
        for (at, (english, chinese)) in CHINESE.iter().enumerate() {
            assert_eq!(
                english.matches("{}").count(),
                chinese.matches("{}").count(),
                "{english}"
            );
            assert!(!CHINESE[..at].iter().any(|(other, _)| other == english), "{english}");
        }
        for status in Status::ALL {
            assert_ne!(Words::Chinese.say(status.as_str()), status.as_str());
        }
        assert_eq!(
            Words::Chinese.fill("until {} of {} branches succeed", &["2", "3"]),
            "至 2 个分支成功（共 3 个）"
        );
    }
}

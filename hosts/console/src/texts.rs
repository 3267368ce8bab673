//! All texts of the pages, each in both languages. Names, errors and code are never translated.

/// A language of the console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// `en`.
    #[default]
    English,
    /// `zh-Hans`: 简体中文.
    Chinese,
}

impl Language {
    /// The language with this tag, as a page or a browser gives it; `None` if it is neither.
    pub fn parse(tag: &str) -> Option<Self> {
        match tag.trim().split(['-', '_']).next() {
            Some("en") => Some(Self::English),
            Some("zh") => Some(Self::Chinese),
            _ => None,
        }
    }

    /// The first of a browser's languages that the console has.
    pub fn of_browser(accepted: &str) -> Self {
        let tags = accepted.split(',').filter_map(|tag| tag.split(';').next());
        tags.filter_map(Self::parse).next().unwrap_or_default()
    }

    /// As HTML and HTTP name it (BCP 47).
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-Hans",
        }
    }

    /// Its name in itself.
    pub(crate) fn own_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Chinese => "简体中文",
        }
    }

    /// The texts in it.
    pub fn texts(self) -> &'static Texts {
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

macro_rules! texts {
    ($($name:ident $english:literal $chinese:literal)*) => {
        /// The texts in one language.
        #[allow(missing_docs, reason = "a text says itself what it is")]
        #[derive(Debug)]
        pub struct Texts {
            /// The language itself.
            pub spoken: Language,
            $(pub $name: &'static str,)*
        }

        const ENGLISH: Texts = Texts {
            spoken: Language::English,
            $($name: $english,)*
        };
        const CHINESE: Texts = Texts {
            spoken: Language::Chinese,
            $($name: $chinese,)*
        };

        #[cfg(test)]
        const TABLE: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $chinese),)*];
    };
}

texts! {
    skip "Skip to content" "跳到内容"
    main_menu "Main" "主菜单"
    overview "Overview" "总览"
    executions "Executions" "执行"
    flows "Flows" "流程"
    queues "Queues" "队列"
    keys "Keys" "并发键"
    schedules "Schedules" "定时"
    inbox "Inbox" "待办"
    bulk "Bulk jobs" "批量任务"
    audit "Audit" "审计"
    appearance "Appearance" "外观"
    light "Light" "浅色"
    dark "Dark" "深色"
    system "As the system" "跟随系统"
    language "Language" "语言"
    sign_in "Sign in" "登录"
    sign_out "Sign out" "退出"
    token "Token" "令牌"
    token_hint "The token stands nowhere but in this form. You stay signed in for 12 hours." "令牌只在此表单中使用。登录保持 12 小时。"
    no_such_token "This is not one of the server's tokens." "这不是此服务器的令牌。"
    scopes "Scopes" "权限"
    no_token "none needed" "无需令牌"
    hide "Hide" "隐藏"
    hide_means "It can no longer be started and is in no list. What runs goes on; a new version brings it back." "它不能再启动，也不在列表中。运行中的继续；提交新版本即可恢复。"
    did_hide "It is hidden." "已隐藏。"
    at_once "At most at once" "并发上限"
    as_curl "As curl" "对应 curl 命令"
    none_yet "Nothing has run yet: start something." "还没有任何执行：现在启动一个。"
    all_keys "Keys" "快捷键"
    keys_on "Single keys" "单键快捷键"
    jump "Search or jump to" "搜索或跳转"
    key_jump "search or jump to: an execution, a flow, a queue, a page" "搜索或跳转：执行、流程、队列、页面"
    key_play "play the history, or stop" "播放历史，或停止"
    space "Space" "空格"
    play "Play the history" "播放历史"
    key_filter "to the filter" "转到筛选"
    key_go "then a letter: overview (o), executions (e), flows (f), queues (q), schedules (s), inbox (i), audit (a)" "再按字母：总览 (o)、执行 (e)、流程 (f)、队列 (q)、定时 (s)、待办 (i)、审计 (a)"
    key_rows "next row, row before" "下一行、上一行"
    key_tick "tick the row" "勾选该行"
    key_event "event before, next event" "上一事件、下一事件"
    key_tabs "tabs" "选项卡"
    key_redrive "redrive" "重新驱动"
    key_help "all keys" "全部快捷键"
    back "Back" "返回"
    zone "Time zone" "时区"
    zone_here "That of this browser" "本浏览器的时区"
    zone_of_link "Times are as in the link that you followed:" "时间按所打开链接中的时区显示："
    zone_own "show them in your own zone" "按自己的时区显示"
    copy_link "Copy link" "复制链接"
    copy "Copy" "复制"
    copied "Copied" "已复制"
    copy_command "Copy as command" "复制为命令"
    key_peek "look at the row without leaving the list" "不离开列表预览该行"
    key_list "execution before and after in the list" "列表中的上一个、下一个执行"
    key_failed "next event that failed; in a list, to the filter" "下一个失败事件；在列表中转到筛选"
    row_before "The one before in the list" "列表中的上一个"
    row_after "The next one in the list" "列表中的下一个"
    peek "Look at it" "预览"
    open_it "Open" "打开"
    new_ones "new" "条新增"
    chosen "chosen" "已选"
    on_other_pages "of them on other pages" "在其他页"
    choose_none "Choose none" "取消选择"
    whole_time "Show all of it" "显示全部时间"
    this_stretch "Only this stretch of time" "只看这一段时间"
    drag_to_zoom "Drag over the time line to see a part of it" "在时间线上拖动可放大其中一段"
    others_like_this "Others like this" "同类失败"
    zoom_in "Larger" "放大"
    zoom_out "Smaller" "缩小"
    zoom_fit "As wide as the pane" "适应宽度"
    depth_hour "Waiting, by minute of the last hour" "最近一小时每分钟的等待数"

    state "State" "状态"
    execution "Execution" "执行"
    flow "Flow" "流程"
    version "Version" "版本"
    current_state "Current state" "进展"
    started "Started" "开始"
    ended "Ended" "结束"
    duration "Duration" "用时"
    name "Name" "名称"
    name_begins "Name begins with" "名称开头"
    reason "Reason" "原因"
    label "Label (key:value)" "标签（键:值）"
    labels "Labels" "标签"
    from "Started from" "开始时间从"
    to "Started before" "开始时间早于"
    ended_from "Ended from" "结束时间从"
    ended_to "Ended before" "结束时间早于"
    reason_of "Waits for" "等待对象"
    parent "Started by the execution" "父执行"
    root "Of the family of" "所属家族"
    any "any" "任意"
    filter "Filter" "筛选"
    remove "Remove" "移除"
    clear "Drop the whole filter" "清除全部筛选"
    newest "Newest" "最新"
    older "Older" "更早"
    more_may_come "Nothing among those looked at so far; older ones may match." "目前查看的部分没有匹配；更早的可能有。"
    nothing_found "No execution matches the filter." "没有符合筛选的执行。"
    nothing_ran "Nothing has run yet." "还没有任何执行。"
    start_with "Start one from a flow's page, or with" "在流程页面启动，或使用命令"
    looked_since "Looked at those requested since" "已查看自此时起请求的执行："
    last_day "Last day" "最近一天"
    day_ago "a day ago" "一天前"
    now "now" "现在"
    ended_by_hour "Ended, by quarter of an hour" "每刻钟结束数"
    all_executions "All executions" "所有执行"
    more_filters "More filters" "更多筛选"
    view_name "Name of the view" "视图名称"
    save_view "Save view" "保存视图"
    delete_view "Delete view" "删除视图"
    did_view "The view is saved." "视图已保存。"
    did_unview "The view is deleted." "视图已删除。"
    view_all "All" "全部"
    view_failed "Failed" "失败"
    view_manual "Needs a person" "待人处理"
    view_running "Running" "运行中"
    as_command "As command" "对应命令"

    succeeded "Succeeded" "成功"
    running "Running" "运行中"
    failed "Failed" "失败"
    timed_out "Timed out" "超时"
    stopped "Stopped" "已停止"
    manual "Manual" "待人处理"
    rolling_back "Rolling back" "回滚中"
    rolled_back "Rolled back" "已回滚"
    rollback_failed "Rollback failed" "回滚失败"
    delayed "Delayed" "未到时间"
    blocked "Blocked" "被阻塞"
    queued "Queued" "等待槽位"
    starting "New" "新建"
    entered "Entered" "已进入"
    waiting "Waiting" "等待中"
    retrying "Retrying" "等待重试"
    polling "Polling" "轮询中"
    caught "Caught" "已捕获"
    cancelled "Cancelled" "已取消"
    skipped "Skipped" "已跳过"
    paused "Paused" "已暂停"
    broken "Set aside" "已搁置"

    in_step "in" "发生于"
    why "Why" "原因"
    since "since" "自"
    until "until" "至"
    what_next "What one can do" "可以做"
    undo_failed "could not be undone" "未能回滚"
    left_to_undo "still to be undone" "尚待回滚"
    steps "Steps" "步骤"
    timeline "Time line" "时间线"
    children "Children" "子执行"
    iterations "Iterations" "迭代"
    per_cell "in each cell" "项每格"
    each_item "Each by itself; a click leads to it" "逐项显示；点击可转到该项"
    no_children "It started no other execution." "它没有启动其他执行。"
    attempt "Attempt" "尝试"
    attempts_of "attempts" "次尝试"
    sent "Sent" "发送"
    received "Received" "返回"
    log "Log" "日志"
    in_definition "In the definition, line" "在定义中，行"
    sent_at "Began" "开始于"
    worker "Worker" "工作者"
    call "Call" "调用"
    in_queue "In the queue" "排队中"
    close "Close" "关闭"
    differs_from "marked: differs from attempt" "已标记：与此次尝试不同："
    one_left_out "earlier attempt is left out" "次更早的尝试未列出"
    left_out "earlier attempts are left out" "次更早的尝试未列出"
    travel "Time travel" "时间旅行"
    event_of "of" "共"
    previous "Previous event" "上一事件"
    next_event "Next event" "下一事件"
    one_failure "failure" "次失败"
    failures "failures" "次失败"
    one_retry "retry" "次重试"
    retries "retries" "次重试"
    one_pause "pause" "次暂停"
    pauses "pauses" "次暂停"
    next_attempt "Next attempt" "下次尝试"
    first_event "First event" "第一个事件"
    last_event "Latest event" "最新事件"
    shown_earlier "This is how it was after the event. The state above is of now." "此处显示该事件之后的情形；上方状态为当前状态。"
    only_failed "Failures only" "仅失败"
    all_events "All events" "全部事件"
    live "Live" "实时"
    not_live "Not live: trying again" "未实时更新：正在重试"
    squeezed "squeezed" "已压缩"
    step "Step" "步骤"
    events "Events" "事件"
    event "Event" "事件"
    time "Time" "时间"
    kind "Type" "类型"
    details "Details" "详情"
    attempts "Attempts" "尝试"
    error "Error" "错误"
    cause "Cause" "说明"
    input "Input" "输入"
    output "Output" "输出"
    data "Data" "数据"
    definition "Definition" "定义"
    raw "Raw" "原始数据"
    graph "Graph" "流程图"
    graph_at "Graph at event" "事件处的流程图"
    show "Show" "显示"
    no_graph "The history is too long for the picture; the steps are in the table." "历史过长，不绘制状态；步骤见表格。"
    first "First" "最早"
    last "Latest" "最新"
    earlier "Earlier" "更早"
    later "Later" "更晚"
    priority "Priority" "优先级"
    child "Child" "子执行"
    forked_from "Forked from" "分叉自"
    deleted "deleted" "已删除"
    more_steps "More steps" "更多步骤"
    undone "rollback" "回滚"

    start "Start" "启动"
    start_like_this "Start like this" "同样启动"
    stop "Stop" "停止"
    stop_rollback "Roll back what was done" "回滚已完成的步骤"
    redrive "Redrive" "重新驱动"
    redrive_latest "With the latest version of the flow" "使用流程的最新版本"
    pause "Pause" "暂停"
    resume "Resume" "继续"
    resolve "Resolve" "处理"
    retry "Try again" "重试"
    succeed "Succeed with an output" "以输出成功"
    fail "Fail with an error" "以错误失败"
    decision "Decision" "决定"
    note "Note" "备注"
    needs_decision "needs a decision" "需要决定"
    delete "Delete" "删除"
    skip_undo "Skip the failed undo" "跳过失败的回滚"
    fork "Fork" "分叉"
    fork_event "From the event" "自事件"
    other_input "With another input (JSON, optional)" "使用其他输入（JSON，可选）"
    other_version "With this version (optional)" "使用此版本（可选）"
    edited_redrive "Redrive with another input of this step" "以该步骤的其他输入重新驱动"
    awaits_report "waits for a report" "等待回报"
    report "Report" "回报"
    outcome "Outcome" "结果"
    save_history "Save as file" "保存为文件"
    save_test "Save as test case" "存为测试用例"
    has_not_begun "It has not begun." "它尚未开始。"
    has_ended "It has ended." "它已结束。"
    has_not_ended "It has not ended." "它尚未结束。"
    is_paused "It is paused already." "它已暂停。"
    is_not_paused "It is not paused." "它没有暂停。"
    has_succeeded "It has succeeded." "它已成功。"
    needs_scope "This needs a token with the scope" "需要具有此权限的令牌："

    by_form "By form" "表单"
    raw_json "As JSON" "JSON"
    no_schema "The flow has no inputSchema that a form can be made of." "流程没有可生成表单的 inputSchema。"
    execution_name "Name of the execution (optional)" "执行名称（可选）"
    required "required" "必填"
    compare "Compare" "比较"
    put_version "Put a version" "提交新版本"
    check "Check" "检查"
    check_again "Check again" "再次检查"
    same_as_latest "The latest version is the same." "最新版本与此相同。"
    differs_from_latest "What differs from the latest version" "与最新版本的差异"
    not_compared "too many lines differ" "差异行过多"
    versions "Versions" "版本"
    created "Created" "创建"
    hash "Hash" "哈希"
    runs "Its executions" "它的执行"
    max_running "At most at once" "最多同时"
    set_limit "Set limit (empty: that of the definition)" "设置上限（留空用定义的上限）"
    no_limit "no limit" "不限"
    no_flows "There is no flow yet. Put one with" "还没有流程。使用命令添加"

    queue "Queue" "队列"
    held "Held" "占用"
    dead "Dead" "死信"
    workers "Workers" "工作者"
    oldest "Oldest" "最久等待"
    busy "Busy" "忙碌"
    settings "Settings" "设置"
    save "Save" "保存"
    most_at_once "Tasks that workers have at a time, at most" "工作者同时持有的任务上限"
    most_a_second "Tasks handed out in a second, at most" "每秒分发的任务上限"
    redeliver "Retries where a worker fell silent" "工作者失联时的重试次数"
    empty_is_none "Empty: no limit." "留空表示不限。"
    no_worker "It has no worker now. Serve it with" "目前没有工作者。使用命令提供"
    waits "Waits for tasks" "等待任务"
    lease_until "Lease ends" "租约到期"
    all_dead "All that are dead" "全部死信"
    requeue "Queue anew" "重新排队"
    drop_dead "Drop" "丢弃"
    no_queues "There is no queue yet. A task with the resource queue:NAME makes one; serve it with" "还没有队列。资源为 queue:NAME 的任务会创建队列；使用命令提供工作者"
    key "Key" "键"
    pool "Pool" "池"
    limit "Limit" "上限"
    no_keys "No concurrency key is in use." "没有使用中的并发键。"
    cron "Cron" "Cron 表达式"
    next_time "Next" "下次"
    latest "Latest" "最近一次"
    no_schedules "There is no schedule yet. Make one with" "还没有定时。使用命令创建"
    fire_now "Start now" "立即启动"
    asks_no_more "Nothing of it waits for an answer any more." "它已没有等待答复的步骤。"
    one_asks "execution waits for a decision" "个执行等待决定"
    ask "executions wait for a decision" "个执行等待决定"
    no_inbox "Nobody is asked for anything." "没有待办。"
    action "Action" "操作"
    by "By" "操作者"
    items "Items" "项目"
    done "Done" "完成"
    open "Open" "未完成"
    execution_count "execution" "个执行"
    executions_count "executions" "个执行"
    by_flow_and_state "By flow and state" "按流程与状态"
    some_of_them "Some of them" "其中一部分"
    rate "In a second at most (optional)" "每秒上限（可选）"
    type_number "Type the number to confirm" "输入该数字以确认"
    all_that_match "All that match, on other pages too" "全部匹配项，含其他页"
    collecting "Collecting" "收集中"
    suspended "Suspended" "已挂起"
    waits_for_collection "Jobs collect their executions one after the other, in the order in which they were made." "批量任务按创建顺序逐个收集执行。"
    waits_for_place "As many jobs run as may at a time. This one goes on when one of them ends, is suspended or is cancelled." "同时运行的批量任务已达上限；其中一个结束、挂起或取消后，此任务继续。"
    suspend "Suspend" "挂起"
    cancel "Cancel" "取消"
    more "More" "更多"
    did_bulk "The job is made." "批量任务已创建。"
    no_bulk "There is no bulk job." "没有批量任务。"
    object "Object" "对象"
    arguments "Arguments" "参数"
    no_audit "Nobody has done anything yet that is noted here." "还没有记录的操作。"
    yes "yes" "是"

    now_running "Running" "正在运行"
    failed_lately "Failed lately" "最近失败"
    wants_a_person "Wants a person" "需要人处理"
    not_begun "Not begun" "尚未开始"
    none "none" "无"
    see_all "See all" "查看全部"
    last_hour "Last hour" "最近一小时"
    counted_since "counted by this server since" "此服务器自此时起计数："
    by_minute "By minute" "每分钟"
    at_most "at most" "最多"
    failed_attempts "Failed attempts" "失败的尝试"
    turns "Turns" "轮次"
    what_fails "What fails" "失败情况"
    nothing_failed "Nothing failed in the last hour." "最近一小时没有失败。"
    other_failure "failure of another kind" "次其他失败"
    other_failures "failures of other kinds" "次其他失败"
    what_waits "What waits, and why" "等待情况及原因"
    nothing_counted "Nothing has run in the last hour." "最近一小时没有执行。"
    median "Half within" "半数用时"
    p95 "95 % within" "95% 用时"
    change "Change" "修改"
    payload "Payload (JSON)" "载荷（JSON）"
    overlap "Overlap" "重叠"
    catch_up "Missed triggers" "错过的触发"
    start_deadline "Start deadline, in seconds" "启动期限（秒）"
    about_cron "five or six fields, maybe after CRON_TZ=Area/City, or @every 1h30m" "五或六个字段，前面可加 CRON_TZ=Area/City，或 @every 1h30m"
    about_payload "what executions get as payload" "执行得到的 payload"
    about_overlap "while the execution before runs: skip, queue or allow" "上次执行仍在运行时：skip 跳过、queue 排队、allow 照常启动"
    about_catch_up "none, or the last of them" "none 不补，last 补最后一次"
    about_priority "0 to 9, 9 first; empty: 5" "0 到 9，9 最先；留空为 5"
    about_start_deadline "one that waits longer fails; empty: no end" "等待更久则失败；留空不限"
    started_hour "Started, last hour" "启动（最近一小时）"
    failed_hour "Failed, last hour" "失败（最近一小时）"
    next_firings "Next firings" "即将触发"
    build "Build" "构建"
    configuration "Configuration" "配置"
    this_server "This server" "此服务器"
    runs_for "Runs for" "已运行"
    followers "Streams" "实时连接"
    waiting_requests "Waiting requests" "等待中的请求"
    why_dependency "waits for another execution" "等待其他执行"
    why_key "waits for a concurrency key" "等待并发键"
    why_flow_limit "as many of the flow run as may" "流程并发已满"
    why_flow_paused "the flow is paused" "流程已暂停"
    why_admission "waits to be admitted" "等待准入"
    why_queue "in a queue" "在队列中"
    why_worker "held by a worker" "由工作者执行"
    why_callback "waits for a callback" "等待回调"
    why_child "waits for a child" "等待子执行"
    why_retry "waits to try again" "等待重试"
    why_poll "polls" "轮询中"
    why_timer "waits for a time" "等待定时"
    queue_is_paused "the queue is paused" "队列已暂停"
    no_worker_asks "no worker asks for tasks" "没有工作者领取任务"
    queue_limit "workers hold as many as may be" "已达队列上限"
    why_call "waits for an answer" "等待响应"
    step_figures "Attempts of the last day, the latest 1,000 of each step at most" "最近一天的尝试，每个步骤至多最近 1,000 次"
    no_step_figures "No step has been tried in the last day." "最近一天没有步骤被尝试。"

    problem "This did not work" "操作未完成"
    problem_next "Go back, or to the list of executions." "返回，或前往执行列表。"
    request_again "Loading again" "正在重新载入"
    follow_link "Follow this link if nothing happens" "如果没有反应，请点击此链接"
    did_stop "It is asked to stop." "已请求停止。"
    did_redrive "It goes on." "已重新驱动。"
    did_pause "It is paused." "已暂停。"
    did_resume "It goes on." "已继续。"
    did_resolve "The decision is taken." "决定已生效。"
    did_skip "The undo is left out." "已跳过该回滚。"
    did_start "It is started." "已启动。"
    did_put "The version is put." "新版本已提交。"
    did_set "It is set." "已设置。"
    did_requeue "They are queued anew." "已重新排队。"
    did_drop "They are listed no longer." "已不再列出。"
    did_part "Some could not be: they go on already, or are gone." "部分未完成：它们已在继续，或已不存在。"
    did_fork "This is the fork." "这是分叉出的执行。"
    did_report "The report is taken." "回报已生效。"
}

/// A number with its noun, in the singular or the plural.
pub(crate) fn with_noun(count: u64, one: &'static str, several: &'static str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_there_in_both_languages() {
        for (name, english, chinese) in TABLE {
            assert!(!english.trim().is_empty() && english.is_ascii(), "{name}");
            // Names of formats are the same in both.
            let same = ["raw_json"].contains(name);
            let is_chinese = chinese
                .chars()
                .any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
            assert!(same || is_chinese, "{name}: {chinese}");
        }
    }

    #[test]
    fn language_is_the_first_that_the_browser_wants_and_the_console_has() {
        for (accepted, language) in [
            ("zh-CN,zh;q=0.9,en;q=0.8", Language::Chinese),
            ("de-DE,de;q=0.9,en;q=0.5,zh;q=0.1", Language::English),
            ("", Language::English),
            ("zhx", Language::English),
        ] {
            assert_eq!(Language::of_browser(accepted), language, "{accepted}");
        }
    }
}
